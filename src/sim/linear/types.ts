// Histories of metadata operations on topics, as their callers saw them.
//
//   client-1   ├── create ──────┤ created t1          an operation takes effect at one moment between
//   client-2        ├── describe ──┤ absent           its call and its return, if at all
//   client-3            ├── alter ─── ...  unknown    or at any moment after its call, or never
//
// An attempt is one request to a broker. A call of the SDK that was retried is several: each attempt whose answer was
// lost is one of unknown outcome, for it may take effect however late.

/** Keys of a topic's policy and what they are. */
export type Facts = Readonly<Record<string, string | number>>

/** On one topic name. */
export type Operation =
  | {
      readonly kind: 'create'
      /** Every creation of a name gives the same keys, and alterations only change keys among them. */
      readonly policy: Facts
      /** Empty: none. */
      readonly token: string
      readonly ifNotExists: boolean
    }
  | { readonly kind: 'alter'; readonly changes: Facts }
  | { readonly kind: 'delete' }
  | { readonly kind: 'describe' }

/** What was answered. A topic id or a policy that the answer did not say is left out; further keys of it are not compared. */
export type Outcome =
  /** Made by this creation, or by an earlier attempt with the same token. */
  | { readonly kind: 'created'; readonly topicId?: string; readonly policy?: Facts }
  /** It was there, with an equal policy, and `ifNotExists` was set. */
  | { readonly kind: 'existing'; readonly topicId?: string; readonly policy?: Facts }
  /** A creation was refused because the name was taken. */
  | { readonly kind: 'taken' }
  | { readonly kind: 'altered'; readonly policy?: Facts }
  | { readonly kind: 'deleted' }
  | { readonly kind: 'described'; readonly topicId: string; readonly policy: Facts }
  /** There was no topic of this name to alter, delete or describe. */
  | { readonly kind: 'absent' }
  /** Refused for another reason: took no effect and says nothing about the topic. */
  | { readonly kind: 'refused' }
  /** Nobody knows whether it took, or will take, effect. */
  | { readonly kind: 'unknown' }

export interface Attempt {
  /**
   * Who asked. A process does one thing after another: its attempts stand in the history in the order in which it made
   * them, and one that was answered comes before the next even where the clock shows the same time.
   */
  readonly process: string
  readonly name: string
  /** By a clock that all processes of the history share. */
  readonly callMs: number
  /** Undefined: no answer came. */
  readonly returnMs: number | undefined
  readonly operation: Operation
  readonly outcome: Outcome
}

export type History = readonly Attempt[]
