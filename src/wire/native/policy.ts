// A topic's policy in bytes: a list of texts by key, so that a newer side can add keys (model/policy-keys.ts).
//
//   policy   u32 count │ count x { text key │ text value }

import type { ByteReader, ByteWriter } from '../../base/cursor.ts'
import type { TopicPolicy } from '../../model/policy.ts'
import { parsePolicy, policyTexts } from '../../model/policy-keys.ts'
import { readList, writeList } from './message.ts'

export function writePolicy(w: ByteWriter, policy: Partial<TopicPolicy>): void {
  writeList(w, policyTexts(policy), (_, [name, text]) => {
    w.text(name).text(text)
  })
}

/** Throws INVALID_POLICY for what parsePolicy refuses. */
export function readPolicy(r: ByteReader): Partial<TopicPolicy> {
  return parsePolicy(readList(r, 4, () => [r.text(), r.text()] as const))
}
