// The operations of the native protocol and the versions of the protocol as a whole. A number never changes its
// meaning; a change of any message makes a new protocol version, negotiated once per connection by HELLO.

export const OPERATION = {
  HELLO: 1,
  CREATE_TOPIC: 2,
  DELETE_TOPIC: 3,
  ALTER_TOPIC: 4,
  DESCRIBE_TOPICS: 5,
  LIST_TOPICS: 6,
  DESCRIBE_CLUSTER: 7,
  PRODUCE: 8,
  FETCH: 9,
  CONSUME: 10,
  CONSUME_CREDIT: 11,
  CONSUME_CLOSE: 12,
  LIST_OFFSETS: 13,
  ALLOCATE_PRODUCER_ID: 14,
  CONSUME_DATA: 15,
  ADD_PARTITIONS: 16,
} as const

export const VERSION_MIN = 1
export const VERSION_MAX = 1
