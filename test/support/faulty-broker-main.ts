// `eastguard server`, the very command, on a disk that takes faults: those of the first word (FaultCommand[] as JSON) from
// the start, and later ones as messages of the parent process, each answered when it holds.
//
//   node faulty-broker-main.js '[{"kind":"read-only","readOnly":true}]' server --data-dir ...

import { rootCommand } from '../../src/cli/grammar.ts'
import { addServerCommand } from '../../src/cli/server/server-command.ts'
import { systemClock } from '../../src/io/clock/system-clock.ts'
import { faultyDisk } from '../../src/io/faults/faulty-disk.ts'
import type { Disk } from '../../src/ports/disk.ts'
import { applyFault, type FaultCommand } from './fault-commands.ts'

const [atStart = '[]', ...words] = process.argv.slice(2)

function onFaultyDisk(inner: Disk): Disk {
  const { disk, faults } = faultyDisk(inner, systemClock())
  for (const command of JSON.parse(atStart) as FaultCommand[]) applyFault(faults, command)
  process.on('message', (command: FaultCommand) => {
    applyFault(faults, command)
    process.send?.('done')
  })
  return disk
}

// Nobody is left to stop it.
process.once('disconnect', () => process.exit())

const program = rootCommand('eastguard')
addServerCommand(program, process.env, { wrapDisk: onFaultyDisk })
await program.parseAsync(words, { from: 'user' })
