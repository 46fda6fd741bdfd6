/** `maxsimd index compact`: merges all segments of an index into one, while no server uses the data directory. */
import type { IndexRow } from '../../catalog/contract.ts';
import { defaultIndexSettings } from '../../index/index-settings.ts';
import { createLocalStore } from '../../index/local-store.ts';
import { ownSegments } from '../../service/indexes/catalog-segments.ts';
import { CommandFailure, messageOf } from '../failure.ts';
import type { DirectoryAccess } from './index-access.ts';
import { mebibytes, table, type CommandResult } from '../output.ts';

interface Size {
  readonly segments: number;
  readonly bytes: number;
}

export async function compactIndexes(access: DirectoryAccess): Promise<CommandResult> {
  const compacted: { index: IndexRow; before: Size; after: Size }[] = [];
  for (const index of access.rows) {
    const before = await sizeOf(access, index.id);
    if (before.segments > 0) await compactIndex(access, index);
    compacted.push({ index, before, after: await sizeOf(access, index.id) });
  }
  const numeric = ['segments before', 'after', 'MiB before', 'MiB after'];
  return {
    document: {
      data: compacted.map(({ index, before, after }) => ({
        index_id: index.id,
        segments_before: before.segments,
        segments_after: after.segments,
        bytes_before: before.bytes,
        bytes_after: after.bytes,
      })),
    },
    text: table(
      ['index', ...numeric],
      compacted.map(({ index, before, after }) => [
        index.id,
        String(before.segments),
        String(after.segments),
        mebibytes(before.bytes),
        mebibytes(after.bytes),
      ]),
      numeric,
    ),
  };
}

async function compactIndex({ catalog, engine, blobs }: DirectoryAccess, index: IndexRow): Promise<void> {
  const failures: unknown[] = [];
  const store = createLocalStore({
    engine,
    blobs,
    exactTokenVectorsMax: 0,
    settings: { ...defaultIndexSettings, copyBytesPerSecond: Infinity },
    catalogOf: (indexId) => ownSegments(catalog, indexId),
    events: {
      onBackgroundError: (_indexId, _job, error) => void failures.push(error),
      onCorrupt: (_indexId, error) => void failures.push(error),
    },
  });
  const stored = await store.open(index.id, {});
  try {
    await stored.mergeAll();
  } finally {
    stored.close();
    await stored.settled();
  }
  const [failure] = failures;
  if (failure !== undefined) {
    throw new CommandFailure('compaction_failed', `index ${index.id}: ${messageOf(failure)}`, {
      cause: failure,
    });
  }
}

async function sizeOf({ stored, blobs }: DirectoryAccess, indexId: string): Promise<Size> {
  const files = await blobs.list(`${indexId}/`);
  return {
    segments: (await stored.read(indexId))?.segments.length ?? 0,
    bytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
  };
}
