// Hosts on one switch, made inside a sandbox: each is a network namespace with one link.
//
//   host 1  10.77.0.1 ──┐
//   host 2  10.77.0.2 ──┼── switch  10.77.0.254: this process, with its clients
//   host 3  10.77.0.3 ──┘
//
// A cut goes one way. Where host A is cut from host B, A takes B's hardware address to be one that nobody has: packets leave A and
// arrive nowhere, as when a cable is bad or a switch has lost its mind, and nobody is told. What B sends to A arrives.
// A port can be blocked by itself, as by a firewall that somebody has set up in haste.

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { readlinkSync } from 'node:fs'
import { promisify } from 'node:util'
import type { Place } from '../../support/broker-process.ts'
import { within } from '../../support/time.ts'

const NETWORK = '10.77.0'
const SWITCH = 254
const NOBODY = '02:00:00:00:00:dd'
const MADE_MS = 10_000

const run = promisify(execFile)

export class Host implements Place {
  readonly host: string
  /** Before the words of a command: it runs on this host. */
  readonly enter: readonly string[]
  readonly number: number
  private readonly holder: ChildProcess

  /** A namespace lives while a process is in it. */
  static async make(number: number): Promise<Host> {
    const holder = spawn('unshare', ['--net', '--', 'sleep', 'infinity'], { stdio: 'ignore' })
    const here = readlinkSync('/proc/self/ns/net')
    await within(MADE_MS, `the namespace of host ${number}`, () => {
      try {
        return readlinkSync(`/proc/${holder.pid}/ns/net`) !== here
      } catch {
        return false
      }
    })
    const host = new Host(number, holder)
    const port = `port-${number}`
    await run('ip', [
      'link',
      'add',
      port,
      'type',
      'veth',
      'peer',
      'name',
      'eth0',
      'netns',
      `${holder.pid}`,
    ])
    await run('ip', ['link', 'set', port, 'master', 'switch', 'up'])
    await host.ip('link', 'set', 'lo', 'up')
    await host.ip('link', 'set', 'eth0', 'up')
    await host.ip('addr', 'add', `${host.host}/24`, 'dev', 'eth0')
    return host
  }

  private constructor(number: number, holder: ChildProcess) {
    this.number = number
    this.host = `${NETWORK}.${number}`
    this.holder = holder
    this.enter = ['nsenter', `--net=/proc/${holder.pid}/ns/net`, '--']
  }

  async ip(...args: readonly string[]): Promise<void> {
    const [nsenter = '', ...words] = this.enter
    await run(nsenter, [...words, 'ip', ...args])
  }

  close(): void {
    this.holder.kill('SIGKILL')
  }
}

interface Blocked {
  readonly from: Host
  readonly to: Host
  readonly port: number
}

export class Hosts {
  readonly all: readonly Host[]
  /** "from to". */
  private readonly cuts = new Set<string>()
  private readonly blocked: Blocked[] = []

  static async make(count: number): Promise<Hosts> {
    await run('ip', ['link', 'set', 'lo', 'up'])
    await run('ip', ['link', 'add', 'switch', 'type', 'bridge'])
    await run('ip', ['link', 'set', 'switch', 'up'])
    await run('ip', ['addr', 'add', `${NETWORK}.${SWITCH}/24`, 'dev', 'switch'])
    const all: Host[] = []
    for (let number = 1; number <= count; number++) all.push(await Host.make(number))
    return new Hosts(all)
  }

  private constructor(all: readonly Host[]) {
    this.all = all
  }

  /** Nothing more arrives that `from` sends to `to`. */
  async cut(from: Host, to: Host): Promise<void> {
    if (this.cuts.has(key(from, to))) return
    this.cuts.add(key(from, to))
    await from.ip('neigh', 'replace', to.host, 'lladdr', NOBODY, 'dev', 'eth0', 'nud', 'permanent')
  }

  async cutBothWays(a: Host, b: Host): Promise<void> {
    await this.cut(a, b)
    await this.cut(b, a)
  }

  /** Nothing more arrives at a TCP port of `to` that `from` sends. */
  async block(from: Host, to: Host, port: number): Promise<void> {
    this.blocked.push({ from, to, port })
    await from.ip('rule', 'add', ...ruleOf(to, port))
  }

  async mend(from: Host, to: Host): Promise<void> {
    if (!this.cuts.delete(key(from, to))) return
    await from.ip('neigh', 'del', to.host, 'dev', 'eth0')
  }

  async mendAll(): Promise<void> {
    for (const { from, to, port } of this.blocked.splice(0)) {
      await from.ip('rule', 'del', ...ruleOf(to, port))
    }
    for (const from of this.all) for (const to of this.all) await this.mend(from, to)
  }

  isCut(from: Host, to: Host): boolean {
    return this.cuts.has(key(from, to))
  }

  others(host: Host): readonly Host[] {
    return this.all.filter((other) => other !== host)
  }

  close(): void {
    for (const host of this.all) host.close()
  }
}

function ruleOf(to: Host, port: number): readonly string[] {
  return ['to', to.host, 'ipproto', 'tcp', 'dport', `${port}`, 'blackhole']
}

function key(from: Host, to: Host): string {
  return `${from.number} ${to.number}`
}
