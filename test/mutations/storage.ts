// What the storage simulator must find: each a rule of PROTOCOLS §3 that is broken, as a change of the compiled code.

export interface Edit {
  /** Below build/. */
  readonly file: string
  /** Occurs once. */
  readonly find: string
  readonly replace: string
}

export interface Mutation extends Edit {
  readonly name: string
  /** For a rule that stands in several places. */
  readonly also?: Edit | readonly Edit[]
}

export const STORAGE_MUTATIONS: readonly Mutation[] = [
  {
    name: 'skip fdatasync',
    file: 'src/storage/wal/files.js',
    find: "{ mode: 'write', durable: true }",
    replace: "{ mode: 'write' }",
  },
  {
    name: 'acknowledge before the sync',
    file: 'src/storage/wal/group-log.js',
    find: 'await this.files.durable.write(buffers, at);',
    replace: 'this.files.durable.write(buffers, at).catch((error) => this.fail(error));',
  },
  {
    name: 'retry a failed sync',
    file: 'src/storage/segment/writer.js',
    find: 'await files.log.sync();',
    replace: 'await files.log.sync().catch(() => files.log.sync());',
  },
  {
    name: 'recycle without a new salt',
    file: 'src/storage/wal/files.js',
    find: 'const salt = getU32(random.bytes(4), 0);',
    replace: 'const salt = 7;',
  },
  {
    name: 'reuse a WAL file before its entries are synced elsewhere',
    file: 'src/storage/flusher.js',
    find: 'wal.releaseBelow(Math.min(least, wal.nextLsn));',
    replace: 'wal.releaseBelow(wal.nextLsn);',
  },
  {
    name: 'step over damage',
    file: 'src/storage/wal/accept.js',
    find: 'lost.push(lostSpan(cursor, endLsn, before, run));',
    replace: '',
  },
  {
    name: "skip the check of a batch's CRC",
    file: 'src/storage/segment/check.js',
    find: 'if (!batchCrcMatches(entry.batch)) {',
    replace: 'if (false) {',
  },
  {
    name: "skip the check of a log record's CRC",
    file: 'src/storage/wal/record.js',
    find: 'return crc32cOf(bytes, at + 4, at + size, salt) === getU32(bytes, at) ? size : 0;',
    replace: 'return size;',
  },
  {
    name: 'count recovered entries as durable',
    file: 'src/storage/segment/writer.js',
    find: 'this.unconfirmed = unconfirmed;',
    replace: 'this.unconfirmed = false;',
  },
  {
    name: 'believe that what a restart finds in a segment file was synced',
    file: 'src/storage/segment/open.js',
    find: 'await file.write([bytes], block.position);',
    replace: '',
  },
  {
    name: 'forget the directory sync',
    file: 'src/storage/segment/writer.js',
    find: 'await this.syncDirs(files);',
    replace: 'this.dirsSynced = true;',
  },
  {
    name: 'apply a journal entry before its sync',
    file: 'src/broker/shards/turns.js',
    find: 'this.host.journal.sync()',
    replace:
      '(this.host.journal.sync().catch((error) => this.host.failed(error)), Promise.resolve())',
  },
  {
    name: 'trust a rebuilt index over the entries',
    file: 'src/storage/segment/open.js',
    find: 'if (!believeIndex || blockEnd(block) > size)\n            return false;\n        if (block.firstEntry + block.entryCount > syncedEnd)\n            return false;',
    replace: 'if (blockEnd(block) > size)\n            return false;',
  },
  {
    name: 'drop unflushed entries from the cache under pressure',
    file: 'src/storage/cache/budget.js',
    find: 'oldest.tail.evictOne(oldest.end)',
    replace: 'oldest.tail.evictOne(Number.POSITIVE_INFINITY)',
  },
  {
    name: 'write the next group over the mark that tells a floor',
    file: 'src/storage/wal/group-log.js',
    find: 'this.files.position = at + GROUP_BYTES;',
    replace: '',
  },
]
