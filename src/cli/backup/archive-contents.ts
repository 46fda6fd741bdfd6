/** What goes into the archive of a backup, and what is wrong with it: records are compared with their checksums. */
import { fstatSync } from 'node:fs';
import path from 'node:path';
import { keyPepperFile } from '../../catalog/key-pepper.ts';
import { catalogFile } from '../../catalog/sqlite/catalog-files.ts';
import { usageFile } from '../../catalog/sqlite/usage/usage-store.ts';
import type { SegmentRow } from '../../index-state.ts';
import type { NativeEngine, SegmentInspection } from '../../index/engine/native.ts';
import { codebookPrefix, derivedEndings } from '../../index/segments/derived-data.ts';
import { openLocalBlobStore } from '../../index/storage/local-blob-store.ts';
import { hasCode } from '../../system-errors.ts';
import { messageOf } from '../failure.ts';
import type { Problem } from '../index/index-verify.ts';
import type { ArchiveWriter } from './archive-writer.ts';
import type { OpenSegments } from './open-segments.ts';

export interface ArchiveSources {
  /** The data directory. */
  readonly directory: string;
  /** Where the copies of the databases are. */
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

/** What cannot be made sense of goes into the archive whole. */
async function addSegment(
  archive: ArchiveWriter,
  engine: NativeEngine,
  row: SegmentRow,
  descriptor: number,
): Promise<readonly Problem[]> {
  const found = await inspect(engine, row, descriptor);
  const { size } = fstatSync(descriptor);
  const isWhole = found instanceof Error || found.state === 'sealed';
  const bytes = isWhole ? size : Math.min(size, segmentHeaderBytes + found.recordBytes);
  await archive.addFile(`segments/${row.blob}`, descriptor, bytes);
  if (found instanceof Error) return [problemOf(row, messageOf(found))];
  return found.damaged.map(({ record, what }) => problemOf(row, `record ${record} is damaged: ${what}`));
}

/** By its descriptor: the name may be gone. */
async function inspect(
  engine: NativeEngine,
  { recordsReferenced }: SegmentRow,
  descriptor: number,
): Promise<SegmentInspection | Error> {
  try {
    return await engine.inspectSegment(`/dev/fd/${descriptor}`, {
      recordsReferenced,
      firstRecord: 0,
      verifyBytesMax: Number.MAX_SAFE_INTEGER,
    });
  } catch (error) {
    if (error instanceof Error) return error;
    throw error;
  }
}

/** Derived data may go at any time. */
async function addIfThere(archive: ArchiveWriter, name: string, file: string): Promise<void> {
  await archive.addPath(name, file).catch((error: unknown) => {
    if (!hasCode(error, 'ENOENT')) throw error;
  });
}

function problemOf({ indexId, blob }: SegmentRow, problem: string): Problem {
  return { index_id: indexId, file: blob, problem };
}
