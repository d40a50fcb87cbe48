// A mutation applied to code.

import type { Edit, Mutation } from './storage.ts'

/** Throws when the code has changed so that the mutation says nothing any more. */
export function mutate(code: string, { find, replace }: Edit, name: string): string {
  const [before, after, ...more] = code.split(find)
  if (before === undefined || after === undefined || more.length > 0) {
    throw new Error(`the mutation "${name}" does not fit: its text must occur once`)
  }
  return before + replace + after
}

export function editsOf(mutation: Mutation): readonly Edit[] {
  const { also } = mutation
  if (also === undefined) return [mutation]
  return [mutation, also].flat()
}
