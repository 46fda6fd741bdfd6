/** Figures of docs/architecture that are constants of the code. A change of one must change the other. */
export const statedConstants = [
  {
    page: 'scheduling.md',
    says: 'look-ahead of 32 batches',
    file: 'src/encoder/server/tuning.ts',
    has: 'lookAheadBatches: 32 }',
  },
  {
    page: 'scheduling.md',
    says: '(8 on a GPU)',
    file: 'src/encoder/server/tuning.ts',
    has: 'lookAheadBatches: 8,',
  },
  {
    page: 'scheduling.md',
    says: 'After eight query batches',
    file: 'src/encoder/inference/session-worker.ts',
    has: 'queryBurstMax = 8;',
  },
  {
    page: 'scheduling.md',
    says: 'For 100 ms after a query',
    file: 'src/encoder/inference/session-pool.ts',
    has: 'keptForQueriesMs = 100;',
  },
  {
    page: 'scheduling.md',
    says: 'no query behind more than 256 padded tokens',
    file: 'src/encoder/inference/session-pool.ts',
    has: 'aheadOfQueryTokensMax = 256;',
  },
  {
    page: 'cluster.md',
    says: '10 for what is done by key, 3 for lists and counts, and 3 for reading',
    file: 'src/catalog/postgres/database.ts',
    has: 'serving: 10,',
  },
  {
    page: 'cluster.md',
    says: 'waits for a connection for more than 5 s',
    file: 'src/catalog/postgres/database.ts',
    has: 'connectMsMax = 5_000;',
  },
  {
    page: 'durability.md',
    says: 'more than a fifth is deleted (from 4 MiB on)',
    file: 'src/index/segments/merge-policy.ts',
    has: 'wasteShareMax = 0.2;',
  },
  {
    page: 'durability.md',
    says: 'a file `reserve` of 8 MiB',
    file: 'src/catalog/space-reserve.ts',
    has: 'reserveBytes = 8 << 20;',
  },
  {
    page: 'durability.md',
    says: 'at most eight sealed segments',
    file: 'src/index/index-settings.ts',
    has: 'sealedSegmentsMax: 8,',
  },
  {
    page: 'durability.md',
    says: 'anything deleted for 12 hours',
    file: 'src/index/index-settings.ts',
    has: 'wasteAgeMsMax: 12 * 3_600_000,',
  },
  {
    page: 'durability.md',
    says: 'Merges copy 64 MiB/s',
    file: 'src/index/index-settings.ts',
    has: 'copyBytesPerSecond: 64 * 1024 * 1024,',
  },
  {
    page: 'durability.md',
    says: 'for 10,000 tenants and months at most',
    file: 'src/catalog/sqlite/usage/usage-sums.ts',
    has: 'usageSumsMax = 10_000;',
  },
  {
    page: 'cluster.md',
    says: 'It takes up 500 a minute',
    file: 'src/service/indexes/waste-ages.ts',
    has: 'sweptAtOnce = 500;',
  },
];
