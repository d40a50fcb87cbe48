// Runs commands on a client without a cluster, and keeps what they write.

import { Readable, Writable } from 'node:stream'
import { Output } from '../../src/cli/output.ts'
import { Clients, runCommand, type Session } from '../../src/cli/shell/run.ts'
import { runScript } from '../../src/cli/shell/script.ts'
import { FakeClient } from './fake-client.ts'

interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
}

export class Rig {
  readonly client: FakeClient = new FakeClient()
  readonly seeds: (readonly string[])[] = []

  async run(words: readonly string[], stdin?: Readable): Promise<Ran> {
    return this.with(false, (session, clients) =>
      runCommand(session, clients, words, { signal: new AbortController().signal, stdin }),
    )
  }

  async script(text: string): Promise<Ran> {
    return this.with(false, (session, clients) =>
      runScript(session, clients, Readable.from([text]), new AbortController().signal),
    )
  }

  private async with(
    json: boolean,
    body: (session: Session, clients: Clients) => Promise<number>,
  ): Promise<Ran> {
    const stdout = new Sink()
    const stderr = new Sink()
    const session: Session = {
      version: '1.2.3',
      out: new Output({ stdout, stderr, stdoutIsTerminal: false, stderrIsTerminal: false, json }),
      env: {},
      seeds: undefined,
      connect: (list) => {
        this.seeds.push(list)
        return this.client
      },
      confirm: undefined,
    }
    const clients = new Clients(session.connect)
    const code = await body(session, clients)
    await clients.close()
    return { code, out: stdout.text, err: stderr.text }
  }
}

/** As a pipe does, it takes a copy before it says that bytes were written. */
class Sink extends Writable {
  text = ''

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString('latin1')
    done()
  }
}
