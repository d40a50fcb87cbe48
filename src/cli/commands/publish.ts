// One record, from the command line.

import type { Command } from 'commander'
import type { CommandContext } from '../context.ts'

export function addPublishCommand(program: Command, context: () => CommandContext): void {
  program
    .command('publish')
    .description('write one record and wait until it is stored')
    .argument('<topic>')
    .argument('<key>', "decides the partition; '' writes a record without a key")
    .argument('<message>')
    .action(async (topic: string, key: string, value: string) => {
      const { out, client, signal, call } = context()
      // Tells at once when there is no broker or no such topic; a producer would go on trying.
      await client.admin().describeTopic(topic, call)
      await using producer = client.producer({ lingerMs: 0 })
      const place = await producer.send({ topic, key: key === '' ? null : key, value }, { signal })
      if (out.json) {
        const { partition, offset, timestamp } = place
        await out.document({ topic, partition, offset, timestamp_ms: timestamp })
      } else await out.line(`stored in partition ${place.partition} at offset ${place.offset}`)
    })
}
