/**
 * `maxsimd restore` into an empty cluster. The archive is read to its end before anything is written. Then it is unpacked on
 * this machine and checked to the last record. Its segments are sealed and put into the object store, and one transaction
 * of the catalog makes everything visible. A restore that is cut off leaves an empty catalog, and objects that are garbage
 * after a day.
 */
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { fingerprintOf } from '../../catalog/key-pepper.ts';
import type { ContentSegment } from '../../catalog/contents.ts';
import type { RestoredSegment } from '../../catalog/postgres/contents.ts';
import { readContents } from '../../catalog/sqlite/contents.ts';
import { newBlob, putSegment } from '../../index/cluster/segment-objects.ts';
import type { NativeEngine } from '../../index/engine/native.ts';
import { withCluster, withClusterWork, type ClusterAccess } from '../cluster/cluster-access.ts';
import { CommandFailure } from '../failure.ts';
import { withEngine } from '../index/index-access.ts';
import type { Findings } from '../index/findings.ts';
import type { CommandResult } from '../output.ts';
import { withByteProgress } from '../progress.ts';
import { readArchive } from './archive-reader.ts';
import { restoreResult } from './restore-result.ts';
import type { RestoreOptions } from './restore.ts';
import { storableContents } from './storable-contents.ts';
import { checked, unpack } from './unpacked.ts';

interface Restoring extends ClusterAccess {
  readonly options: RestoreOptions;
  /** Directory of the unpacked archive. */
  readonly work: string;
  /** May throw to end the work. */
  readonly onBytes: (bytes: number) => void;
}

/** Segments that are uploaded at once. */
const putAtOnce = 8;

export async function restoreCluster(options: RestoreOptions): Promise<CommandResult> {
  const { config, file } = options;
  assertOptions(options);
  const { size } = await stat(file);
  // The archive is read, then unpacked, then uploaded.
  return await withByteProgress(options, 3 * size, (onBytes) =>
    // A restore that was refused before may have made the catalog, with another pepper.
    withCluster(config, (access) => restoreArchive({ ...access, options, onBytes }), {
      takesAnyPepper: true,
    }),
  );
}

async function restoreArchive(restoring: Omit<Restoring, 'work'>): Promise<CommandResult> {
  const { options, operator, onBytes } = restoring;
  const { config, file } = options;
  assertRestored(await operator.occupied());
  const { manifest } = await readArchive(file, { onBytes });
  return await withClusterWork(config, 'restoring', 'restore_failed', async (work) => {
    const { findings, remarks } = await restoreTo({ ...restoring, work });
    return restoreResult({ file, manifest }, findings, [
      ...remarks,
      ...(options.withoutKeyPepper ? ['All API keys are revoked. Make others: maxsimd key create'] : []),
    ]);
  });
}

function assertOptions({ keyPepper, acceptDamage }: RestoreOptions): void {
  if (keyPepper !== undefined) {
    throw new CommandFailure(
      'usage_error',
      'the key pepper of several nodes is the file that MAXSIMD_KEY_PEPPER_FILE names: leave out --key-pepper',
    );
  }
  if (!acceptDamage) return;
  throw new CommandFailure(
    'usage_error',
    'nodes share whole objects only: restore with --accept-damage into a data directory, delete what is damaged there, ' +
      'and move that',
  );
}

function assertRestored(refusal: string | undefined): void {
  if (refusal === undefined) return;
  throw new CommandFailure('restore_failed', `${refusal}. Nothing was changed`);
}

async function restoreTo(
  restoring: Restoring,
): Promise<{ readonly findings: Findings; readonly remarks: readonly string[] }> {
  const { options, work, keyPepper, operator, onBytes } = restoring;
  const { withoutKeyPepper: voidKeys } = options;
  await unpack({ file: options.file, keyPepper: undefined, work, onBytes });
  const contents = await readContents(work);
  try {
    if (!voidKeys) assertPepper(options.file, keyPepper, contents.pepperFingerprint);
    const findings = await checked({ ...options, withoutKeyPepper: true }, work);
    const uploads: number[] = [];
    const segments = await putSegments(restoring, contents.segments, uploads);
    options.signal.throwIfAborted();
    const storable = storableContents(contents);
    assertRestored(await operator.restore({ contents: storable, segments, uploads, keyPepper, voidKeys }));
    return { findings, remarks: storable.remarks };
  } finally {
    contents.close();
  }
}

function assertPepper(file: string, keyPepper: Uint8Array, fingerprint: Uint8Array): void {
  if (Buffer.compare(fingerprintOf(keyPepper), fingerprint) === 0) return;
  throw new CommandFailure(
    'restore_failed',
    `the API keys of ${file} were made with another pepper than MAXSIMD_KEY_PEPPER_FILE holds: give every node the ` +
      `archive's (tar -xOf ${file} key-pepper, or its copy), or restore with --without-key-pepper, which revokes all ` +
      'keys. Nothing was changed',
  );
}

/** Fills `uploads` with the rows that make an uploaded object garbage, unless the catalog names it. */
async function putSegments(
  restoring: Restoring,
  segments: readonly ContentSegment[],
  uploads: number[],
): Promise<readonly RestoredSegment[]> {
  const { config } = restoring.options;
  const restored: RestoredSegment[] = [];
  // All uploads share one iterator, so the first failure ends it for the others.
  const waiting = (function* () {
    yield* segments;
  })();
  return withEngine(config, async (engine) => {
    const putAll = async (): Promise<void> => {
      for (const segment of waiting) {
        const blob = newBlob(segment.indexId);
        uploads.push(...(await restoring.operator.noteUploads([blob])));
        restored.push(await put(restoring, engine, segment, blob));
      }
    };
    const putting = await Promise.allSettled(Array.from({ length: putAtOnce }, putAll));
    for (const one of putting) if (one.status === 'rejected') throw one.reason;
    return restored;
  });
}

/** Seals an active segment, because nodes share only immutable ones. */
async function put(
  { objects, work, onBytes }: Restoring,
  engine: NativeEngine,
  { id, indexKey, blob: unpacked, state, recordsReferenced }: ContentSegment,
  blob: string,
): Promise<RestoredSegment> {
  const local = (name: string): string => path.join(work, 'segments', name);
  const file = local(unpacked);
  const { dim, rowBits } = await engine.inspectSegment(file, {
    recordsReferenced,
    firstRecord: 0,
    verifyBytesMax: 0,
  });
  const native = engine.createIndex({ dim, rowBits, exactTokenVectorsMax: 0 });
  try {
    await native.openSegment(id, file, { recordsReferenced, sealed: state === 'sealed' });
    if (state === 'active') await native.seal(id);
    const [info] = native.segments();
    const cache = {
      create: (name: string) => Promise.resolve(local(name.replace(blob, unpacked))),
      adopt: () => Promise.resolve(),
    };
    const { records, files } = await putSegment({ objects, cache }, { id, blob }, info!);
    onBytes(files.reduce((sum, { bytes }) => sum + bytes, 0));
    return { id, indexKey, blob, records, files };
  } finally {
    native.close();
  }
}
