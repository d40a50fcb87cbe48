// docs/reference/config.md, made from the table of keys.

import { CONFIG_KEYS, flagOf, type KeySpec, keySpec, variableOf } from './key.ts'

const HEAD = `# Configuration

<!-- Made by \`eastguard config reference\` from src/app/config/keys.ts; a test compares. -->

A value is looked for in this order, and the first place that has it wins:

1. the command line: \`--client-port 3000\`
2. the environment: \`EASTGUARD_CLIENT_PORT=3000\`, then bare \`CLIENT_PORT=3000\` (bare \`HOST\` is not read: too many shells set it)
3. \`eastguard.yaml\` in the working directory, or the file given by \`-c\`/\`--config\`: \`client_port: 3000\`
4. the default

Sizes are bytes and take \`KiB MiB GiB TiB\` (and \`kB MB GB TB\`); durations are milliseconds and take \`ms s min h d\`. Lists are
comma-separated on the command line and in the environment. An empty variable counts as not set. An unknown key, an unknown
\`EASTGUARD_*\` variable or a bad value stops the start with a message that names key, value and source.

\`eastguard config show\` prints every key with its value and where it came from (\`--json\` for programs); \`eastguard config check\`
says whether a broker would start with it.
`

const TAIL = `
## Exit codes of \`eastguard server\`

| code | meaning |
|---|---|
| 0 | stopped as asked (SIGTERM, SIGINT), after draining |
| 1 | the broker made a mistake; the log says which |
| 2 | bad arguments or configuration: a restart will not help |
| 3 | the data directory is in use, damaged, newer, an older copy of one that went on, or belongs to another broker: a restart will not help |
| 4 | an address could not be listened on |
| 5 | the disk failed; nothing more was acknowledged |
| 6 | the broker was removed from its cluster for good and holds no shard and no segment any more: a restart will not help, an empty data directory makes it a new broker |
`

export function configReference(): string {
  let text = HEAD
  let section = ''
  for (const key of CONFIG_KEYS) {
    const spec = keySpec(key)
    if (spec.section !== section) {
      section = spec.section
      text += `\n## ${section}\n`
    }
    text += `\n### \`${key}\`\n\n${spec.what}\n\n`
    text += `- default: ${defaultText(spec)}\n- type: ${typeText(spec)}\n`
    text += `- flag \`${flagOf(key)}\`, variable \`${variableOf(key)}\`\n`
    if (spec.raising !== undefined) text += `- raising it: ${spec.raising}\n`
    if (spec.lowering !== undefined) text += `- lowering it: ${spec.lowering}\n`
  }
  return text + TAIL
}

function defaultText(spec: KeySpec): string {
  if (spec.derived !== undefined) return spec.derived
  return spec.default === '' ? 'empty' : `\`${spec.default}\``
}

function typeText(spec: KeySpec): string {
  const { kind, least, most } = spec
  const extra = spec.unlimited === true ? ', or -1 for no limit' : ''
  const range =
    least === undefined ? '' : most === undefined ? `, at least ${least}` : `, ${least} to ${most}`
  switch (kind) {
    case 'text':
      return 'text'
    case 'integer':
      return `whole number${range}${extra}`
    case 'port':
      return 'port number, 0 to 65535'
    case 'size':
      return `size in bytes${range}${extra}`
    case 'duration':
      return `duration in milliseconds${range}${extra}`
    case 'list':
      return 'list of texts'
    case 'choice':
      return (spec.choices ?? []).map((choice) => `\`${choice}\``).join(', ')
  }
}
