// The segment engine: see segment/types.ts for what it offers to the log store.

import type { SegmentEngine, SegmentEnv } from './segment/types.ts'

export type OpenSegmentEngine = (env: SegmentEnv) => SegmentEngine
