// The SDK's public door. All that users may rely on is named here.

export { type ConnectOptions, EastGuard } from './app/connect.ts'
export { xxh32 } from './base/checksum.ts'
export type { Codec } from './base/codec.ts'
export { EastGuardError, ERRORS, type ErrorCode } from './base/errors.ts'
export type {
  Admin,
  BrokerInfo,
  CallOptions,
  ClientOptions,
  ClusterInfo,
  ConsumeFrom,
  Consumer,
  ConsumerBatch,
  ConsumerOptions,
  ConsumerRecord,
  CreatedTopic,
  CreateTopicOptions,
  Data,
  ForceableEnd,
  KeySpan,
  OffsetAt,
  PartitionOffset,
  PolicyChanges,
  Producer,
  ProducerOptions,
  ProducerRecord,
  RecordHeader,
  RecordPlace,
  SendOptions,
} from './client/api.ts'
export type { BrokerView, NodeRole, RangeView, SegmentView, TopicView } from './model/metadata.ts'
export type { Acks, Tier, TopicPolicy } from './model/policy.ts'
