// What happens in the membership, in sentences: one line for each thing that whoever runs the cluster may want to know.
// Suspicions come and go, and are counted instead.

import type { Address } from '../../base/address.ts'
import { EastGuardError } from '../../base/errors.ts'
import type { SwimEvent } from '../../core/swim/types.ts'
import type { NodeId } from '../../model/ids.ts'
import type { ClusterIdentity, Member, MemberState, SyncAnswer } from '../../model/swim.ts'
import type { Log } from '../../ports/log.ts'

type MemberEvent = Extract<SwimEvent, { readonly kind: 'member' }>

export function tellMember(log: Log, { member, was, restarted }: MemberEvent): void {
  const line = changeOf(member.state, was, restarted)
  if (line !== undefined) log[line.level](line.message, fieldsOf(member))
}

interface Line {
  readonly level: 'info' | 'warn'
  readonly message: string
}

function changeOf(
  now: MemberState,
  was: MemberState | undefined,
  restarted: boolean,
): Line | undefined {
  const wasThere = was === 'alive' || was === 'suspect'
  if (now === 'dead') {
    const message = 'a broker is found dead: it has not answered anybody'
    return was === 'dead' ? undefined : { level: 'warn', message }
  }
  if (now === 'left') {
    return was === 'left' ? undefined : { level: 'info', message: 'a broker has left the cluster' }
  }
  if (was === undefined) return { level: 'info', message: 'a broker is in the cluster' }
  if (restarted) return { level: 'info', message: 'a broker has started anew' }
  return wasThere ? undefined : { level: 'info', message: 'a broker is back' }
}

function fieldsOf({ node, boot, profile }: Member): Readonly<Record<string, unknown>> {
  return { node, name: profile.name, address: profile.cluster, bootCount: boot }
}

export function tellHeld(
  log: Log,
  { node, holdMs, leftOut }: Extract<SwimEvent, { readonly kind: 'held' }>,
): void {
  const message = leftOut
    ? 'a broker comes and goes again and again: it is not counted on'
    : 'a broker comes and goes: it is not counted on for a while'
  log.warn(message, { node, holdMs: Math.round(holdMs) })
}

/** `seeded`: seeds were given, and all of them were this broker itself. */
export function tellFounded(log: Log, { id, shards }: ClusterIdentity, seeded: boolean): void {
  const why = seeded ? ', since join_seed_nodes names nobody but this broker' : ''
  log[seeded ? 'warn' : 'info'](`a new cluster was founded${why}`, {
    cluster: id,
    shards,
    hint: 'to join another one instead, stop this broker, empty its data directory and name brokers of that cluster in join_seed_nodes',
  })
}

/** Whoever waits for seeds wants to know which of them it waits for: once of each. */
export class SeedNews {
  private readonly log: Log
  private readonly told = new Set<string>()

  constructor(log: Log) {
    this.log = log
  }

  silent({ host, port }: Address, why: string): void {
    const seed = `${host}:${port}`
    if (this.told.has(seed)) return
    this.told.add(seed)
    this.log.warn('a seed does not answer: all seeds are asked until one does', { seed, why })
  }

  answered(to: Address, answer: SyncAnswer): void {
    if (answer.kind === 'sync-refused' && answer.reason === 'no-member') {
      this.silent(to, 'it belongs to no cluster itself, or is leaving its cluster')
    }
  }
}

// What must stop a broker.

export function refusedAsOld(node: NodeId, own: number, remembered: number): EastGuardError {
  return new EastGuardError(
    'DATA_DIR_MISMATCH',
    `this is start ${own} of node ${node}, and other brokers have met its start ${remembered}: the data directory is an ` +
      'older copy, or another process runs on a copy of it',
    {
      detail: { node, bootCount: own, remembered },
      hint: 'stop the other process, or give this broker an empty data directory: it joins the cluster as a new node',
    },
  )
}

export function foundedByMistake(
  own: ClusterIdentity,
  other: ClusterIdentity,
  from: Address | undefined,
): EastGuardError {
  const where = from === undefined ? '' : `, at ${from.host}:${from.port}`
  return new EastGuardError(
    'CLUSTER_MISMATCH',
    `this broker founded cluster ${own.id}, is alone in it, and has met cluster ${other.id}${where}, which is older or has more brokers`,
    {
      detail: { cluster: own.id, other: other.id },
      hint: 'name brokers of the other cluster in join_seed_nodes, and give this broker an empty data directory',
    },
  )
}
