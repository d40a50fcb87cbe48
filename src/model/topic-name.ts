import { EastGuardError } from '../base/errors.ts'

const TOPIC_NAME_MAX = 249
const ALLOWED = /^[A-Za-z0-9._-]+$/

/** Why a topic name is not allowed; undefined when it is. The rules are Kafka's. */
export function topicNameFault(name: string): string | undefined {
  if (name.length === 0) return 'a topic name is empty'
  if (name.length > TOPIC_NAME_MAX)
    return `a topic name has ${name.length} characters, at most ${TOPIC_NAME_MAX} are allowed`
  if (name === '.' || name === '..') return `a topic may not be named '${name}'`
  if (!ALLOWED.test(name))
    return `the topic name '${name}' has other characters than A-Z a-z 0-9 . _ -`
  return undefined
}

/** Throws INVALID_TOPIC_NAME. */
export function checkTopicName(name: string): void {
  const fault = topicNameFault(name)
  if (fault !== undefined) throw new EastGuardError('INVALID_TOPIC_NAME', fault)
}

/** System topics begin so; they refuse deletion and plain produce. */
export function isSystemTopic(name: string): boolean {
  return name.startsWith('__eastguard_')
}
