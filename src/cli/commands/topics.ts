// Topics: create, delete, alter, list; describe-topic.ts shows one.

import { type Command, Option } from 'commander'
import type { CreatedTopic } from '../../client/api.ts'
import type { BrokerView, TopicView } from '../../model/metadata.ts'
import { minInsyncDefault, type TopicPolicy } from '../../model/policy.ts'
import type { CommandContext } from '../context.ts'
import { UsageError } from '../failure.ts'
import { plural } from '../output.ts'
import { collect, POLICY_NAMES, policyOf, wholeNumber } from './arguments.ts'
import { describeTopic, topicJson } from './describe-topic.ts'

const CONFIG_HELP = `set a policy value (repeatable): ${POLICY_NAMES.join(', ')}`

/** What `default_replication_factor` is unless it is set. */
const USUAL_REPLICAS = 3

export function addTopicCommands(program: Command, context: () => CommandContext): void {
  addCreate(program, context)
  addDelete(program, context)
  addAlter(program, context)
  program
    .command('list-topics')
    .description('list the names of all topics')
    .action(async () => listTopics(context()))
  program
    .command('describe-topic')
    .description("show a topic's policy, ranges, segments and offsets")
    .argument('<topic>')
    .action(async (name: string) => describeTopic(context(), name))
}

interface CreateOptions {
  readonly partitions?: number
  readonly ranges?: number
  readonly mode?: 'auto' | 'fixed'
  readonly ifNotExists?: true
  readonly config?: readonly string[]
}

function addCreate(program: Command, context: () => CommandContext): void {
  program
    .command('create-topic')
    .description('create a topic')
    .argument('<topic>', 'its name: 1 to 249 of A-Z a-z 0-9 . _ -')
    .argument('[replication-factor]', 'replicas of each record', wholeNumber(1))
    .option(
      '--partitions <P>',
      'number of partitions; it can be raised later, never lowered',
      wholeNumber(1),
    )
    .option('--ranges <N>', 'number of ranges (means --mode fixed)', wholeNumber(1))
    .addOption(
      new Option('--mode <mode>', 'auto: ranges split and merge by load; fixed: never').choices([
        'auto',
        'fixed',
      ]),
    )
    .option('--if-not-exists', 'succeed when the topic exists with an equal policy')
    .option('--config <name=value>', CONFIG_HELP, collect)
    .addHelpText(
      'after',
      `
The number after the name is how many replicas each record gets, not how many partitions: 'create-topic my_topic 3'
asks for three. Users of Kafka who want three partitions write 'create-topic my_topic --partitions 3'.
Without the number there are default_replication_factor of them (3), or as many as there are brokers, if those are fewer. A topic that was made while brokers were down keeps
that number when they are back, until it is raised: 'alter-topic my_topic --config replication_factor=3'.`,
    )
    .action(async (name: string, replicas: number | undefined, options: CreateOptions) => {
      const { out, client, call } = context()
      const mode = options.mode ?? (options.ranges === undefined ? undefined : 'fixed')
      const topic = await client.admin().createTopic(name, {
        policy: {
          ...policyOf(options.config ?? []),
          ...(replicas === undefined ? {} : { replicationFactor: replicas }),
          ...(options.partitions === undefined ? {} : { partitions: options.partitions }),
          ...(options.ranges === undefined ? {} : { ranges: options.ranges }),
          ...(mode === undefined ? {} : { rangeMode: mode }),
        } satisfies Partial<TopicPolicy>,
        ifNotExists: options.ifNotExists === true,
        ...call,
      })
      if (out.json) await out.document({ ...topicJson(topic), created: topic.created })
      else {
        await out.line(createdText(topic))
        const given = replicas ?? policyOf(options.config ?? []).replicationFactor
        await noteFewReplicas(context(), topic, topic.created && given === undefined)
      }
    })
}

/** Whoever runs several brokers may expect that any of them can be lost. `byDefault`: the brokers have chosen how many there are. */
async function noteFewReplicas(
  { out, client, call }: CommandContext,
  { name, policy, ranges }: CreatedTopic,
  byDefault: boolean,
): Promise<void> {
  const { replicationFactor } = policy
  if (replicationFactor > 1 && !byDefault) return
  const { brokers } = await client.admin().describeCluster(call)
  const fewer = byDefault ? fewerForGood(name, replicationFactor, brokers) : undefined
  if (fewer !== undefined) out.note(`${out.red('warning:')} ${fewer}`)
  if (replicationFactor > 1 || brokers.length < 2) return
  const at = ranges[0]?.segments.at(-1)?.replicas[0]
  const holder = brokers.find(({ nodeId }) => nodeId === at)
  const where = holder === undefined ? 'one broker' : `broker ${holder.nodeNumber} alone`
  out.note(
    `its records are kept by ${where}: while it is down they can be neither read nor written`,
  )
}

/** A topic that was made while brokers were missing has as many replicas as the others, and keeps that. */
function fewerForGood(
  topic: string,
  replicas: number,
  brokers: readonly BrokerView[],
): string | undefined {
  const members = brokers.filter(({ role }) => role === 'member')
  const away = members.filter(({ state }) => state === 'dead' || state === 'left')
  const wanted = Math.min(members.length, USUAL_REPLICAS)
  if (replicas >= wanted || replicas < members.length - away.length) return undefined
  const missing = away.map(({ nodeNumber }) => `broker ${nodeNumber}`).join(' and ')
  return (
    `${topic} has ${plural(replicas, 'replica')}, as many as there are brokers without ${missing}, and keeps that number. ` +
    `For ${wanted}, when all are back: alter-topic ${topic} --config replication_factor=${wanted} --config min_insync_replicas=${minInsyncDefault(wanted)}`
  )
}

function createdText({ name, policy, created }: CreatedTopic): string {
  const what = created ? `created ${name}` : `${name} exists already with an equal policy`
  return `${what}: ${plural(policy.partitions, 'partition')}, ${plural(policy.replicationFactor, 'replica')}`
}

function addDelete(program: Command, context: () => CommandContext): void {
  program
    .command('delete-topic')
    .description('delete a topic and all its records')
    .argument('<topic>')
    .option('--yes', 'do not ask')
    .action(async (name: string, options: { readonly yes?: true }) => {
      const { out, client, call, signal, confirm } = context()
      if (options.yes !== true) {
        if (confirm === undefined) {
          throw new UsageError(`delete-topic ${name}: nobody can be asked here; add --yes`)
        }
        if (!(await confirm(`delete ${name} and all its records?`, signal))) {
          throw new Error(`${name} was not deleted`)
        }
      }
      await client.admin().deleteTopic(name, call)
      if (out.json) await out.document({ deleted: name })
      else await out.line(`deleted ${name}`)
    })
}

interface AlterOptions {
  readonly config?: readonly string[]
  readonly partitions?: number
}

function addAlter(program: Command, context: () => CommandContext): void {
  program
    .command('alter-topic')
    .description("change a topic's policy")
    .argument('<topic>')
    .option('--config <name=value>', CONFIG_HELP, collect)
    .option('--partitions <P>', 'raise the number of partitions', wholeNumber(1))
    .action(async (name: string, options: AlterOptions) => {
      const { out, client, call } = context()
      const changes = policyOf(options.config ?? [])
      if (options.partitions === undefined && Object.keys(changes).length === 0) {
        throw new UsageError(
          `alter-topic ${name}: nothing to change; give --config or --partitions`,
        )
      }
      let topic: TopicView | undefined
      if (Object.keys(changes).length > 0) {
        topic = await client.admin().alterTopic(name, changes, call)
      }
      if (options.partitions !== undefined) {
        topic = await client.admin().addPartitions(name, options.partitions, call)
        out.note('some keys go to other partitions from now on')
      }
      if (topic === undefined) return
      if (out.json) await out.document(topicJson(topic))
      else await out.line(`altered ${name}`)
    })
}

async function listTopics({ out, client, call }: CommandContext): Promise<void> {
  const names = await client.admin().listTopics(call)
  if (out.json) await out.document({ topics: [...names] })
  else if (names.length === 0) out.note("there are no topics; 'create-topic <topic>' makes one")
  else for (const name of names) await out.line(name)
}
