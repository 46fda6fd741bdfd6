/** Adds the files of a data directory to an archive, and compares records with their checksums. */
import { fstatSync } from 'node:fs';
import path from 'node:path';
import { keyPepperFile } from '../../catalog/key-pepper.ts';
import { catalogFile } from '../../catalog/sqlite/catalog-files.ts';
import { usageFile } from '../../catalog/sqlite/usage/usage-store.ts';
import type { SegmentRow } from '../../contracts/index-state.ts';
import type { NativeEngine } from '../../index/engine/native.ts';
import { codebookPrefix, derivedEndings } from '../../index/segments/derived-data.ts';
import { openLocalBlobStore } from '../../index/storage/local-blob-store.ts';
import { hasCode } from '../../system-errors.ts';
import { messageOf } from '../failure.ts';
import type { Problem } from '../index/findings.ts';
import type { ArchiveWriter } from './archive-writer.ts';
import type { OpenSegments } from './open-segments.ts';

export interface ArchiveSources {
  /** The data directory. */
  readonly directory: string;
  /** Directory of the copies of the databases. */
  readonly databases: string;
  readonly keyPepper: Uint8Array | undefined;
  readonly engine: NativeEngine;
  readonly segments: OpenSegments;
}

/** Bytes before the first record of a segment. */
const segmentHeaderBytes = 64;

export async function addEverything(
  archive: ArchiveWriter,
  sources: ArchiveSources,
): Promise<readonly Problem[]> {
  const { directory, databases, keyPepper, segments } = sources;
  for (const name of [catalogFile, usageFile]) await addIfThere(archive, name, path.join(databases, name));
  if (keyPepper !== undefined) await archive.addBytes(keyPepperFile, Buffer.from(keyPepper));
  const problems: Problem[] = segments.missing.map((row) => problemOf(row, 'is missing'));
  const addDerived = (blob: string): Promise<void> =>
    addIfThere(archive, `segments/${blob}`, path.join(directory, 'segments', blob));
  for (const row of segments.rows) {
    const descriptor = segments.descriptors.get(row.id);
    if (descriptor === undefined) continue;
    problems.push(...(await addSegment(archive, sources.engine, row, descriptor)));
    // Columns stay behind. A restored service reads their values from the catalog when it needs them.
    for (const ending of Object.values(derivedEndings)) await addDerived(row.blob + ending);
  }
  const blobs = await openLocalBlobStore(path.join(directory, 'segments'));
  for (const indexId of new Set(segments.rows.map((row) => row.indexId))) {
    for (const { name } of await blobs.list(codebookPrefix(indexId))) {
      if (!name.endsWith('.tmp')) await addDerived(name);
    }
  }
  return problems;
}

/** A segment that cannot be inspected goes into the archive whole. */
async function addSegment(
  archive: ArchiveWriter,
  engine: NativeEngine,
  row: SegmentRow,
  descriptor: number,
): Promise<readonly Problem[]> {
  const { recordsReferenced } = row;
  // The name of the segment may be gone, so it is opened by its descriptor.
  const found = await engine
    .inspectSegment(`/dev/fd/${descriptor}`, {
      recordsReferenced,
      firstRecord: 0,
      verifyBytesMax: Number.MAX_SAFE_INTEGER,
    })
    .catch((error: unknown) => error as Error);
  const { size } = fstatSync(descriptor);
  const isWhole = found instanceof Error || found.state === 'sealed';
  const bytes = isWhole ? size : Math.min(size, segmentHeaderBytes + found.recordBytes);
  await archive.addFile(`segments/${row.blob}`, descriptor, bytes);
  if (found instanceof Error) return [problemOf(row, messageOf(found))];
  return found.damaged.map(({ record, what }) => problemOf(row, `record ${record} is damaged: ${what}`));
}

/** A server may remove derived data at any time. */
async function addIfThere(archive: ArchiveWriter, name: string, file: string): Promise<void> {
  await archive.addPath(name, file).catch((error: unknown) => {
    if (!hasCode(error, 'ENOENT')) throw error;
  });
}

function problemOf({ indexId, blob }: SegmentRow, problem: string): Problem {
  return { index_id: indexId, file: blob, problem };
}
