// A program in a network of its own: it may make links, addresses and further network namespaces, and nothing of that can be
// seen from outside, or outlive it. Its processes are in a PID namespace of their own, whose first one it is: when it ends,
// however it ends, the kernel ends all others, and with the last process of a namespace its links are gone.
//
//   this machine ──(unshare)── network namespace "switch", PID namespace: the program
//                                  └── (unshare) one network namespace for each host, see hosts.ts
//
// That needs root, or a kernel that lets users have namespaces of their own. Where there is neither, that is said.

import { spawn, spawnSync } from 'node:child_process'
import { platform } from 'node:os'

/** What hosts.ts makes. */
const PROBE = [
  'ip link add probe type bridge',
  'ip link add probe-a type veth peer name probe-b',
  'ip neigh replace 10.77.0.1 lladdr 02:00:00:00:00:01 dev probe nud permanent',
  'ip rule add to 10.77.0.1 ipproto tcp dport 1 blackhole',
  'nsenter --version',
].join(' && ')

/** Why nothing can be run so here; undefined: it can. */
export function sandboxTrouble(): string | undefined {
  if (platform() !== 'linux') return `network namespaces are Linux's, this is ${platform()}`
  const { status, stderr, error } = spawnSync('unshare', [...words(), 'sh', '-c', PROBE], {
    encoding: 'utf8',
  })
  if (status === 0) return undefined
  return `no network namespaces can be made here: ${error?.message ?? stderr.trim()}`
}

/** Node, with this program; resolves with the exit code when it has ended. */
export async function runSandboxed(
  program: string,
  args: readonly string[],
  print: (text: string) => void,
): Promise<number | string> {
  const child = spawn('unshare', [...words(), process.execPath, program, ...args], {
    // The program ends when its standard input does: also when this process is killed.
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  child.stdout.setEncoding('utf8').on('data', print)
  child.stderr.setEncoding('utf8').on('data', print)
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => resolve(code ?? signal ?? 'unknown'))
  })
}

function words(): readonly string[] {
  const user = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']
  return [...user, '--net', '--pid', '--fork', '--kill-child', '--mount-proc', '--']
}
