/**
 * `maxsimd backup`: everything that answers depend on, in one archive (`archive-format.ts`). A server may run beside it.
 *
 * The archive has the state of one moment of the catalog. The segments that the catalog names then are held open, so they
 * can be read even if a server merges or deletes them meanwhile. Sealed segments never change, and active ones only grow.
 * An active one is read up to the last record that the catalog names. So all indexes are at the same moment.
 */
import { rename, stat } from 'node:fs/promises';
import path from 'node:path';
import { fingerprintOf, readKeyPepper } from '../../catalog/key-pepper.ts';
import { assertNoProblem, catalogFile, inspectCatalogFiles } from '../../catalog/sqlite/catalog-files.ts';
import { CatalogSnapshot, copyUsage } from '../../catalog/sqlite/snapshot.ts';
import { catalogDamage } from '../../catalog/sqlite/reads/catalog-reader.ts';
import { usageFile, usageProblems } from '../../catalog/sqlite/usage/usage-store.ts';
import { syncDirectory } from '../../catalog/sync-directory.ts';
import { isClustered, type Config } from '../../app/config.ts';
import { assertCatalog } from '../catalog/catalog-access.ts';
import { CommandFailure } from '../failure.ts';
import { withEngine } from '../index/index-access.ts';
import { problemsTable, type Problem } from '../index/findings.ts';
import { fields, type CommandResult } from '../output.ts';
import { addEverything } from './archive-contents.ts';
import { bytesOf, openSegments, type OpenSegments } from './open-segments.ts';
import { archiveFile, withArchive } from './with-archive.ts';
import { withWorkDirectory } from './work-directory.ts';

export interface BackupOptions {
  readonly config: Config;
  /** Replaced once the new archive is complete. */
  readonly file: string;
  readonly withKeyPepper: boolean;
  /** The version of this program. */
  readonly version: string;
  readonly signal: AbortSignal;
  readonly stderr: NodeJS.WriteStream;
}

export interface MadeBackup {
  readonly bytes: number;
  readonly files: number;
  /** Number of indexes with documents. */
  readonly indexes: number;
  readonly segments: number;
  readonly problems: readonly Problem[];
}

export async function takeBackup(options: BackupOptions): Promise<CommandResult> {
  if (isClustered(options.config)) {
    const { writeClusterArchive } = await import('./cluster-backup.ts');
    return await replaceArchive(options, (work) => writeClusterArchive(options, work));
  }
  const directory = options.config.MAXSIMD_DATA_DIR;
  await assertCatalog(directory);
  assertNoProblem(await inspectCatalogFiles(directory), directory);
  return await replaceArchive(options, (work) => writeArchive(options, work));
}

async function replaceArchive(
  options: BackupOptions,
  write: (work: string) => Promise<MadeBackup>,
): Promise<CommandResult> {
  const file = path.resolve(options.file);
  const work = `${file}.partial`;
  const busy = { code: 'backup_failed', message: `another backup writes ${file}` } as const;
  const made = await withWorkDirectory(work, busy, async () => {
    const written = await write(work);
    await rename(path.join(work, archiveFile), file);
    await syncDirectory(path.dirname(file));
    return written;
  });
  return resultOf(file, options.withKeyPepper, made);
}

async function writeArchive(options: BackupOptions, work: string): Promise<MadeBackup> {
  const { config, signal, withKeyPepper } = options;
  const directory = config.MAXSIMD_DATA_DIR;
  const onProgress = (): void => signal.throwIfAborted();
  const snapshot = new CatalogSnapshot(directory);
  let segments: OpenSegments | undefined;
  try {
    segments = openSegments(directory, snapshot);
    const keyPepper = withKeyPepper ? await pepperOf(directory, snapshot.pepperFingerprint()) : undefined;
    await snapshot.copyTo(path.join(work, catalogFile), onProgress).catch((error: unknown) => {
      throw error instanceof CommandFailure ? error : (damagedCatalog(directory) ?? error);
    });
    // The open snapshot kept the server from truncating its write-ahead log.
    snapshot.close();
    // A damaged ledger is left out. A server then begins a new one.
    const problems = (await usageProblems(directory)).filter(({ file }) => file === usageFile);
    if (problems.length === 0) await copyUsage(directory, path.join(work, usageFile), onProgress);
    const made = await fillArchive(options, work, segments, keyPepper);
    return {
      ...made,
      problems: [...problems.map((found) => ({ index_id: '', ...found })), ...made.problems],
    };
  } finally {
    snapshot.close();
    segments?.close();
  }
}

async function fillArchive(
  options: BackupOptions,
  work: string,
  segments: OpenSegments,
  keyPepper: Uint8Array | undefined,
): Promise<MadeBackup> {
  const { size } = await stat(path.join(work, catalogFile));
  const archived = { ...options, work, keyPepper, bytesMax: size + bytesOf(segments) };
  const directory = options.config.MAXSIMD_DATA_DIR;
  const written = await withEngine({ MAXSIMD_ENGINE_THREADS: 1 }, (engine) =>
    withArchive(archived, (archive) =>
      addEverything(archive, { directory, databases: work, keyPepper, engine, segments }),
    ),
  );
  return {
    ...written,
    indexes: new Set(segments.rows.map(({ indexId }) => indexId)).size,
    segments: segments.descriptors.size,
  };
}

/** The error of a failed copy does not say whether the database is damaged or the disk failed. So its pages are read. */
function damagedCatalog(directory: string): CommandFailure | undefined {
  const [found] = catalogDamage(directory);
  if (found === undefined) return undefined;
  return new CommandFailure('backup_failed', `${catalogFile}: ${found}. See "maxsimd index verify"`);
}

async function pepperOf(directory: string, fingerprint: Uint8Array): Promise<Uint8Array> {
  const pepper = await readKeyPepper(directory);
  if (pepper instanceof Uint8Array && Buffer.compare(fingerprintOf(pepper), fingerprint) === 0) return pepper;
  throw new CommandFailure('backup_failed', 'the key pepper was replaced just now: take the backup again');
}

function resultOf(file: string, withKeyPepper: boolean, made: MadeBackup): CommandResult {
  const { problems, ...counts } = made;
  const said = [
    fields([
      ['archive', file],
      ['bytes', String(counts.bytes)],
      ['indexes with documents', String(counts.indexes)],
      ['segments', String(counts.segments)],
      ['key pepper', withKeyPepper ? 'in the archive' : 'not in the archive: keep a copy of it elsewhere'],
    ]),
    ...(problems.length === 0
      ? []
      : ['What is stored is damaged, and so is what the archive holds of it:', problemsTable(problems)]),
  ];
  return {
    document: { file, ...counts, key_pepper: withKeyPepper, problems },
    text: said.join('\n'),
    failed: problems.length > 0,
  };
}
