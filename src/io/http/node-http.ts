// The HTTP port over node:http: GET and HEAD, no request bodies, small headers, short time-outs.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Http, HttpRequest, HttpResponse } from '../../ports/http.ts'
import type { Address, Listener } from '../../ports/streams.ts'
import { networkError, showAddress } from '../tcp/errors.ts'

const REQUEST_TIMEOUT_MS = 10_000
const CONNECTIONS_MAX = 256
const CLOSE_GRACE_MS = 1000

export const nodeHttp: Http = {
  serve(
    address: Address,
    handler: (request: HttpRequest) => Promise<HttpResponse>,
  ): Promise<Listener> {
    return new Promise((resolve, reject) => {
      const server = createServer(
        { requestTimeout: REQUEST_TIMEOUT_MS, headersTimeout: REQUEST_TIMEOUT_MS },
        (request, response) => void answer(handler, request, response),
      )
      server.maxConnections = CONNECTIONS_MAX
      server.once('error', (cause) => {
        reject(networkError(`cannot listen on ${showAddress(address)}`, cause))
      })
      server.listen(address.port, address.host, () => {
        const { port } = server.address() as AddressInfo
        resolve({
          address: { host: address.host, port },
          close: async () => {
            server.close()
            server.closeIdleConnections()
            // An answer that is under way may end; a peer that never reads it may not keep the process.
            setTimeout(() => server.closeAllConnections(), CLOSE_GRACE_MS).unref()
          },
        })
      })
    })
  },
}

async function answer(
  handler: (request: HttpRequest) => Promise<HttpResponse>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  request.resume()
  const { method = 'GET' } = request
  const result = await respond(handler, method, request.url ?? '/')
  const { body } = result
  response.writeHead(result.status, {
    'content-type': result.contentType,
    'content-length': typeof body === 'string' ? Buffer.byteLength(body) : body.length,
  })
  response.end(method === 'HEAD' ? undefined : body)
}

async function respond(
  handler: (request: HttpRequest) => Promise<HttpResponse>,
  method: string,
  url: string,
): Promise<HttpResponse> {
  if (method !== 'GET' && method !== 'HEAD') return text(405, 'only GET and HEAD are answered\n')
  try {
    const { pathname, searchParams } = new URL(url, 'http://broker')
    const path = decodeURIComponent(pathname)
    return await handler({ method, path, query: Object.fromEntries(searchParams) })
  } catch (error) {
    if (error instanceof URIError || error instanceof TypeError) {
      return text(400, 'the request cannot be read\n')
    }
    return text(500, 'the broker made a mistake\n')
  }
}

function text(status: number, body: string): HttpResponse {
  return { status, contentType: 'text/plain; charset=utf-8', body }
}
