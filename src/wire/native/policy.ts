// A topic's policy in bytes: a list of texts by key (model/policy-keys.ts). In a request a key that the broker does not
// know is refused, since its author means something by it; in a response it is passed over, since a newer broker
// may have more keys than an older client.
//
//   policy   u32 count │ count x { text key │ text value }        no key twice

import {
  type ByteReader,
  type ByteWriter,
  readList,
  Truncated,
  writeList,
} from '../../base/cursor.ts'
import type { TopicPolicy } from '../../model/policy.ts'
import { POLICY_KEYS, parsePolicy, policyTexts } from '../../model/policy-keys.ts'

export function writePolicy(w: ByteWriter, policy: Partial<TopicPolicy>): void {
  writeList(w, policyTexts(policy), (_, [name, text]) => {
    w.text(name).text(text)
  })
}

/** Some of a policy, as a client gives it. Throws INVALID_POLICY for what parsePolicy refuses. */
export function readPolicy(r: ByteReader): Partial<TopicPolicy> {
  return parsePolicy(readTexts(r))
}

/** All of a policy, as a broker gives it. */
export function readWholePolicy(r: ByteReader): TopicPolicy {
  const known = readTexts(r).filter(([key]) => POLICY_KEYS.includes(key))
  if (known.length !== POLICY_KEYS.length) throw new Truncated('a policy lacks keys')
  return parsePolicy(known) as TopicPolicy
}

function readTexts(r: ByteReader): readonly (readonly [string, string])[] {
  const texts = readList(r, 4, () => [r.text(), r.text()] as const)
  const keys = new Set(texts.map(([key]) => key))
  if (keys.size !== texts.length) throw new Truncated('a policy has a key twice')
  return texts
}
