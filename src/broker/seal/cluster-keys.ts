// The keys of a cluster: the first seals all that this broker sends, and each of them opens. With one key on all brokers that
// is all; with two a key is changed while the cluster runs:
//
//   every broker has    old          old, new      new, old      new
//   it seals with       old          old           new           new
//   it opens            old          both          both          new
//
// From one column to the next brokers are restarted one after another: whatever two neighbouring columns seal, both open.
//
// Nothing is ever sealed with a key itself, but with what is derived from it for one use: a packet, or one direction of a
// connection. What a key is called on the wire is derived as well.

import { EMPTY, equalBytes } from '../../base/bytes.ts'
import type { Random } from '../../ports/random.ts'
import type { Secrets } from '../../ports/secrets.ts'
import { KEY_NAME_BYTES } from '../../wire/peer/key-hello.ts'

/** Of the secret and of this program: another use of the same secret elsewhere derives other keys. */
const NAME = 'eastguard cluster key name 1'

export interface ClusterKey {
  readonly secret: Uint8Array
  /** Tells keys apart, and says nothing about them. */
  readonly name: Uint8Array
}

export class ClusterKeys {
  readonly secrets: Secrets
  readonly random: Random
  /** Seals. */
  readonly first: ClusterKey
  /** Open. */
  readonly all: readonly ClusterKey[]

  constructor(
    ports: { readonly secrets: Secrets; readonly random: Random },
    keys: readonly [Uint8Array, ...Uint8Array[]],
  ) {
    const { secrets, random } = ports
    const keyOf = (secret: Uint8Array): ClusterKey => ({
      secret,
      name: secrets.derive(secret, EMPTY, NAME).subarray(0, KEY_NAME_BYTES),
    })
    const [first, ...others] = keys
    this.secrets = secrets
    this.random = random
    this.first = keyOf(first)
    this.all = [this.first, ...others.map(keyOf)]
  }

  named(name: Uint8Array): ClusterKey | undefined {
    return this.all.find((key) => equalBytes(key.name, name))
  }
}
