// Health, readiness and metrics over HTTP.
//
//   /healthz   200 while the process runs
//   /readyz    200 when requests are taken; 503 while starting or stopping
//   /metrics   the Prometheus text format

import type { Http, HttpRequest, HttpResponse } from '../../ports/http.ts'
import type { Metrics } from '../../ports/metrics.ts'
import type { Address, Listener } from '../../ports/streams.ts'

export interface AdminState {
  readonly metrics: Metrics
  /** Undefined: ready. Otherwise why not, in a few words. */
  notReady(): string | undefined
}

export function serveAdmin(http: Http, address: Address, state: AdminState): Promise<Listener> {
  return http.serve(address, (request) => answer(state, request))
}

async function answer(state: AdminState, request: HttpRequest): Promise<HttpResponse> {
  switch (request.path) {
    case '/healthz':
      return text(200, 'ok\n')
    case '/readyz': {
      const why = state.notReady()
      return why === undefined ? text(200, 'ready\n') : text(503, `${why}\n`)
    }
    case '/metrics':
      return {
        status: 200,
        contentType: 'text/plain; version=0.0.4; charset=utf-8',
        body: await state.metrics.render(),
      }
    default:
      return text(404, 'there are /healthz, /readyz and /metrics\n')
  }
}

function text(status: number, body: string): HttpResponse {
  return { status, contentType: 'text/plain; charset=utf-8', body }
}
