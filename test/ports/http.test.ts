import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nodeHttp } from '../../src/io/http/node-http.ts'
import type { Http, HttpRequest, HttpResponse } from '../../src/ports/http.ts'
import type { Address } from '../../src/ports/streams.ts'
import { SimClock } from '../../src/sim/ports/clock.ts'
import { simNetwork } from '../../src/sim/ports/network.ts'

type Ask = (to: Address, request: HttpRequest) => Promise<HttpResponse>

async function echo(request: HttpRequest): Promise<HttpResponse> {
  return { status: 203, contentType: 'application/json', body: JSON.stringify(request) }
}

function httpSuite(name: string, host: string, http: Http, ask: Ask): void {
  test(`${name} HTTP: a handler gets method, path and query, and its answer arrives`, async () => {
    const listener = await http.serve({ host, port: 0 }, echo)
    const request = { method: 'GET', path: '/a b/ü', query: { x: '1 2', y: '' } }
    const response = await ask(listener.address, request)
    assert.equal(response.status, 203)
    assert.equal(response.contentType, 'application/json')
    assert.deepEqual(JSON.parse(String(response.body)), request)
    await assert.rejects(http.serve(listener.address, echo), /in use/)
    await listener.close()
    await (await http.serve(listener.address, echo)).close()
  })
}

httpSuite('node', '127.0.0.1', nodeHttp, async (to, { method, path, query }) => {
  const url = `http://${to.host}:${to.port}${encodeURI(path)}?${new URLSearchParams(query).toString()}`
  const response = await fetch(url, { method })
  const contentType = response.headers.get('content-type') ?? ''
  return { status: response.status, contentType, body: await response.text() }
})

const network = simNetwork({ clock: new SimClock(), seed: 1 })
httpSuite('simulated', 'a', network.http('a'), (to, request) => network.request(to, request))

test('node HTTP: bad requests and failing handlers get an answer and harm nothing', async () => {
  const listener = await nodeHttp.serve({ host: '127.0.0.1', port: 0 }, async ({ path }) => {
    if (path === '/fail') throw new Error('planned')
    return { status: 200, contentType: 'text/plain', body: 'four' }
  })
  const base = `http://127.0.0.1:${listener.address.port}`
  const status = async (path: string, method: string): Promise<number> =>
    (await fetch(`${base}${path}`, { method, body: method === 'POST' ? 'x' : null })).status
  assert.equal(await status('/fail', 'GET'), 500)
  assert.equal(await status('/%ff', 'GET'), 400)
  assert.equal(await status('/', 'POST'), 405)
  const head = await fetch(base, { method: 'HEAD' })
  assert.equal(head.headers.get('content-length'), '4')
  assert.equal(await head.text(), '')
  assert.equal(await status('/', 'GET'), 200)
  await listener.close()
})
