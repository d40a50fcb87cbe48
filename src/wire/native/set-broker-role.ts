// SET_BROKER_ROLE drains a broker (it is given nothing, and what it has goes to others), ends that, or removes it for good.
//
//   request   16B node id │ u8 role: 0 member, 1 draining, 2 removed
//   response  u8 role

import { readNodeId, writeId } from '../../model/id-bytes.ts'
import type { NodeId } from '../../model/ids.ts'
import { NODE_ROLES, type NodeRole } from '../../model/metadata.ts'
import { type Message, readChoice } from './message.ts'
import { OPERATION } from './operations.ts'

export interface SetBrokerRoleRequest {
  readonly nodeId: NodeId
  readonly role: NodeRole
}

export interface SetBrokerRoleResponse {
  readonly role: NodeRole
}

export const setBrokerRole: Message<SetBrokerRoleRequest, SetBrokerRoleResponse> = {
  operation: OPERATION.SET_BROKER_ROLE,
  writeRequest: (w, q) => {
    writeId(w, q.nodeId)
    w.u8(NODE_ROLES.indexOf(q.role))
  },
  readRequest: (r) => ({ nodeId: readNodeId(r), role: readChoice(r, NODE_ROLES, 'role') }),
  writeResponse: (w, s) => {
    w.u8(NODE_ROLES.indexOf(s.role))
  },
  readResponse: (r) => ({ role: readChoice(r, NODE_ROLES, 'role') }),
}
