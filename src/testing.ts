// A real broker inside the caller's process, for tests: free ports, a temporary directory, ready in well under a
// second, gone without a trace afterwards.
//
//   await using broker = await startBroker()
//   await using client = new EastGuard({ seeds: [broker.address] })

export { startBroker } from './app/embedded.ts'
export type { TestBroker, TestBrokerOptions } from './app/running.ts'
