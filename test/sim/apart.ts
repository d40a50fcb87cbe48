// Long lives apart from the test runner: in a thread of their own, the same file once more.
//
// The runner keeps an entry for every promise until that is collected, to tell whose an error is. Where promises are made by
// the million this costs a third of the time, and the table of these entries lies in the heap that is measured.

import { test } from 'node:test'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'

const DONE = ''

/** The test of the file at `url`, which has no other. */
export async function testApart(
  url: string,
  name: string,
  body: (tell: (line: string) => void) => Promise<void>,
): Promise<void> {
  if (isMainThread) {
    await test(name, (t) => inThread(url, (line) => t.diagnostic(line)))
    return
  }
  await body((line) => parentPort?.postMessage(line))
  parentPort?.postMessage(DONE)
}

function inThread(url: string, tell: (line: string) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL(url))
    worker.on('message', (line: string) => {
      if (line === DONE) resolve()
      else tell(line)
    })
    worker.on('error', reject)
    worker.on('exit', (code) => reject(new Error(`it ended with ${code}, and was not done`)))
  })
}
