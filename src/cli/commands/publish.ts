// One record, from the command line.

import { type Command, Option } from 'commander'
import { ACKS, type Acks } from '../../model/policy.ts'
import type { CommandContext } from '../context.ts'

interface PublishOptions {
  readonly acks?: Acks
}

/** Longer than any fail-over; short enough for a person who waits. */
const DELIVERY_TIMEOUT_MS = 30_000

export function addPublishCommand(program: Command, context: () => CommandContext): void {
  program
    .command('publish')
    .description('write one record and wait until it is stored')
    .argument('<topic>')
    .argument('<key>', "decides the partition; '' writes a record without a key")
    .argument('<message>')
    .addOption(new Option('--acks <acks>', "default: the topic's").choices(ACKS))
    .action(async (topic: string, key: string, value: string, options: PublishOptions) => {
      const { out, client, signal, call } = context()
      // Tells at once when there is no broker or no such topic; a producer would go on trying.
      await client.admin().describeTopic(topic, call)
      await using producer = client.producer({
        lingerMs: 0,
        deliveryTimeoutMs: DELIVERY_TIMEOUT_MS,
        ...(options.acks === undefined ? {} : { acks: options.acks }),
      })
      const place = await producer.send({ topic, key: key === '' ? null : key, value }, { signal })
      if (out.json) {
        const { partition, offset, timestamp } = place
        await out.document({ topic, partition, offset, timestamp_ms: timestamp })
      } else if (place.offset < 0) await out.line(`sent to partition ${place.partition}`)
      else await out.line(`stored in partition ${place.partition} at offset ${place.offset}`)
    })
}
