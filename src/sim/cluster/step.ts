// What can go wrong in a cluster, as data: where, how, and for how long by the world's clock. Places are hosts by name where a
// client may be meant, and brokers by number where only a broker can.

export type Step =
  /** Everything between `side` and all others is cut, or only what `side` sends, or only what it is sent. */
  | {
      readonly kind: 'partition'
      readonly side: readonly string[]
      readonly way: 'both' | 'out' | 'in'
      readonly forMs: number
    }
  /** Two cannot reach each other, and both reach the rest; or only the first cannot reach the second. */
  | {
      readonly kind: 'cut'
      readonly from: string
      readonly to: string
      readonly way: 'both' | 'one'
      readonly forMs: number
    }
  | {
      readonly kind: 'slow-link'
      readonly from: string
      readonly to: string
      readonly latencyMs: number
      readonly bytesPerMs: number
      readonly forMs: number
    }
  /** Shares of the packets (and of the chunks of connections) that are lost, doubled, or up to `lateMs` late. */
  | {
      readonly kind: 'lossy-link'
      readonly from: string
      readonly to: string
      readonly lost: number
      readonly doubled: number
      readonly late: number
      readonly lateMs: number
      readonly forMs: number
    }
  /** All connections of a host. */
  | { readonly kind: 'reset'; readonly host: string }
  /** The `bytes`-th byte that some other host sends to `to`; which other is a share of those that it has connections with. */
  | {
      readonly kind: 'reset-after'
      readonly to: string
      readonly peer: number
      readonly bytes: number
    }
  /** Connections end at `gone`, and another host, drawn likewise, is not told. */
  | { readonly kind: 'half-open'; readonly gone: string; readonly peer: number }
  | {
      readonly kind: 'pause'
      readonly broker: number
      readonly forMs: number
      readonly timersFirst: boolean
    }
  | { readonly kind: 'kill'; readonly broker: number; readonly downMs: number }
  /** Several at once, each down for its own time. */
  | {
      readonly kind: 'power-cut'
      readonly brokers: readonly number[]
      readonly keep: 'some' | 'none'
      readonly downMs: readonly number[]
    }
  | {
      readonly kind: 'crash-at-operation'
      readonly broker: number
      readonly operations: number
      readonly keep: 'all' | 'some' | 'none'
      readonly downMs: number
    }
  | { readonly kind: 'stop'; readonly broker: number; readonly downMs: number }
  | { readonly kind: 'wall'; readonly broker: number; readonly byMs: number }
  | {
      readonly kind: 'slow-disk'
      readonly broker: number
      readonly latencyMs: number
      readonly forMs: number
    }
  | {
      readonly kind: 'fail-disk'
      readonly broker: number
      readonly operation: 'sync' | 'write'
      readonly prefix: string
    }
  | { readonly kind: 'wipe'; readonly broker: number; readonly downMs: number }
  /** Its disk is copied; the copy that is put back is the last. */
  | { readonly kind: 'copy'; readonly broker: number }
  | { readonly kind: 'restore'; readonly broker: number; readonly downMs: number }
  /** The shard shall be kept by this broker and those that follow it. */
  | { readonly kind: 'move'; readonly shard: number; readonly broker: number }
  | { readonly kind: 'hand-over'; readonly shard: number; readonly broker: number }

/** `atMs` counts from when the brokers are up. */
export type TimedStep = Step & { readonly atMs: number }

/** Of metadata, in each run. */
export const SHARDS = 4

export interface Hosts {
  readonly brokers: number
  readonly clients: readonly string[]
}

export function brokerHost(index: number): string {
  return `b${index + 1}`
}
