// Branded ids: the compiler keeps a node id from being used as a topic id; at run time they are plain values.

declare const brand: unique symbol
type Brand<T, Name> = T & { readonly [brand]: Name }

/** 32 hexadecimal digits (16 bytes on the wire), made once at creation: a recreated topic has another. */
export type TopicId = Brand<string, 'TopicId'>
/** 32 hexadecimal digits, made once per data directory. */
export type NodeId = Brand<string, 'NodeId'>
export type ClusterId = Brand<string, 'ClusterId'>

const ID = /^[0-9a-f]{32}$/

function id(text: string, what: string): string {
  if (!ID.test(text)) throw new RangeError(`${what} must be 32 hexadecimal digits: ${text}`)
  return text
}

export function topicId(text: string): TopicId {
  return id(text, 'a topic id') as TopicId
}
export function nodeId(text: string): NodeId {
  return id(text, 'a node id') as NodeId
}
export function clusterId(text: string): ClusterId {
  return id(text, 'a cluster id') as ClusterId
}
