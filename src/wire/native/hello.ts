// HELLO: the first request of every connection. The client says which protocol versions it speaks; the broker chooses
// the highest that both do, or answers UNSUPPORTED_VERSION and closes. The layout never changes; later versions may append
// fields, and a reader passes over what follows those it knows.
//
//   request   u8 version min │ u8 version max │ text client name │ text cluster id ('' = any)
//   response  u8 version │ text node id │ text cluster id │ text broker version │ u32 frame bytes max │ u32 requests in flight max

import type { Message } from './message.ts'
import { OPERATION } from './operations.ts'

export interface HelloRequest {
  readonly versionMin: number
  readonly versionMax: number
  readonly clientName: string
  readonly clusterId: string
}

export interface HelloResponse {
  readonly version: number
  readonly nodeId: string
  readonly clusterId: string
  readonly brokerVersion: string
  readonly frameBytesMax: number
  readonly requestsInFlightMax: number
}

export const hello: Message<HelloRequest, HelloResponse> = {
  operation: OPERATION.HELLO,
  writeRequest: (w, q) => {
    w.u8(q.versionMin).u8(q.versionMax).text(q.clientName).text(q.clusterId)
  },
  readRequest: (r) => {
    const request = {
      versionMin: r.u8(),
      versionMax: r.u8(),
      clientName: r.text(),
      clusterId: r.text(),
    }
    r.raw(r.left)
    return request
  },
  writeResponse: (w, s) => {
    w.u8(s.version).text(s.nodeId).text(s.clusterId).text(s.brokerVersion)
    w.u32(s.frameBytesMax).u32(s.requestsInFlightMax)
  },
  readResponse: (r) => {
    const response = {
      version: r.u8(),
      nodeId: r.text(),
      clusterId: r.text(),
      brokerVersion: r.text(),
      frameBytesMax: r.u32(),
      requestsInFlightMax: r.u32(),
    }
    r.raw(r.left)
    return response
  },
}
