// A small HTTP server for health, metrics and the dashboard. Requests without bodies are all that is needed.

import type { Address, Listener } from './streams.ts'

export interface HttpRequest {
  readonly method: string
  /** Decoded, without the query. */
  readonly path: string
  readonly query: Readonly<Record<string, string>>
}

export interface HttpResponse {
  readonly status: number
  readonly contentType: string
  readonly body: string | Uint8Array
}

export interface Http {
  serve(
    address: Address,
    handler: (request: HttpRequest) => Promise<HttpResponse>,
  ): Promise<Listener>
}
