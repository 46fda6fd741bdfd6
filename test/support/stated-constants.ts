/** Figures of docs/architecture that are constants of the code. A change of one must change the other. */
export const statedConstants = [
  {
    page: 'encoder.md',
    says: 'look-ahead of 32 batches',
    has: 'lookAheadBatches: 32,',
  },
  {
    page: 'encoder.md',
    says: '(8 on a GPU)',
    has: 'lookAheadBatches: 8,',
  },
  {
    page: 'encoder.md',
    says: 'After eight query batches',
    has: 'queryBurstMax = 8;',
  },
  {
    page: 'encoder.md',
    says: 'holds none behind one of more than 256 padded tokens',
    has: 'aheadOfTokensMax = 256;',
  },
  {
    page: 'encoder.md',
    says: 'a batch has at most 128 padded tokens, or one window',
    has: 'sharedBatchTokens: 128,',
  },
  {
    page: 'cluster.md',
    says: '10 for what is done by key, 3 for lists and counts, and 3 for reading',
    has: 'serving: 10,',
  },
  {
    page: 'cluster.md',
    says: 'waits for a connection for more than 5 s',
    has: 'connectMsMax = 5_000;',
  },
  {
    page: 'indexes.md',
    says: 'more than a fifth is deleted (from 4 MiB on)',
    has: 'wasteShareMax = 0.2;',
  },
  {
    page: 'durability.md',
    says: 'a file `reserve` of 8 MiB',
    has: 'reserveBytes = 8 << 20;',
  },
  {
    page: 'indexes.md',
    says: 'at most eight sealed segments',
    has: 'sealedSegmentsMax: 8,',
  },
  {
    page: 'indexes.md',
    says: 'anything deleted for 12 hours',
    has: 'wasteAgeMsMax: 12 * 3_600_000,',
  },
  {
    page: 'indexes.md',
    says: 'Merges copy 64 MiB/s',
    has: 'copyBytesPerSecond: 64 * 1024 * 1024,',
  },
  {
    page: 'durability.md',
    says: 'for 10,000 tenants and months at most',
    has: 'usageSumsMax = 10_000;',
  },
  {
    page: 'cluster.md',
    says: 'It takes up 500 a minute',
    has: 'sweptAtOnce = 500;',
  },
  {
    page: 'service.md',
    says: 'may cost 50,000 units',
    has: 'searchWorkMax = 50_000;',
  },
  {
    page: 'service.md',
    says: 'all requests of a tenant at a time 100,000',
    has: 'tenantWorkMax = 100_000;',
  },
  {
    page: 'service.md',
    says: 'would wait more than 1 s for each other',
    has: 'waitMsMax: 1_000,',
  },
  {
    page: 'service.md',
    says: 'A piece of more than 10 ms',
    has: 'longWork = 100;',
  },
  {
    page: 'encoder.md',
    says: 'and 256 at a time',
    has: 'waitingMax: 256,',
  },
  {
    page: 'encoder.md',
    says: 'query batches of at most 128 padded tokens',
    has: 'shortTokensMax = 128;',
  },
  {
    page: 'indexes.md',
    says: 'has 8 MiB of filter terms',
    has: 'segmentTermBytesMax: 8 * 1024 * 1024,',
  },
  {
    page: 'cluster.md',
    says: 'wait for them, 200 ms at most',
    has: 'waitMsMax = 200;',
  },
  {
    page: 'cluster.md',
    says: 'skips 2^36 of them',
    has: 'idsPassedOver = 2 ** 36;',
  },
  {
    page: 'candidates.md',
    says: 'At most 32 columns a segment',
    has: 'columnsMax = 32;',
  },
  {
    page: 'candidates.md',
    says: 'at most 32 bitmaps',
    has: 'conditionSetsMax = 32;',
  },
  {
    page: 'candidates.md',
    says: '4 MiB of bitmaps for terms',
    has: 'termSetsBytes = size_t(4) << 20,',
  },
];
