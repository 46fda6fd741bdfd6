/**
 * `maxsimd restore`: makes a data directory of an archive. The archive is read to its end before anything is written.
 * Then it is unpacked beside the data directory, and the catalog's pages, the key pepper and each record are checked
 * there. A rename makes it the data directory: whatever cuts it off, that is as it was or whole.
 */
import { mkdir, open, readdir, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { FileHandle } from 'node:fs/promises';
import { keyPepperFile } from '../../catalog/key-pepper.ts';
import { catalogFile } from '../../catalog/sqlite/catalog-files.ts';
import { usageFile } from '../../catalog/sqlite/usage/usage-store.ts';
import { syncDirectory } from '../../catalog/sync-directory.ts';
import type { Config } from '../../app/config.ts';
import { derivedEndings } from '../../index/segments/derived-data.ts';
import { hasCode } from '../../system-errors.ts';
import { assertDataDirectory } from '../catalog/catalog-access.ts';
import { CommandFailure } from '../failure.ts';
import { mebibytes } from '../index/index-inspect.ts';
import { inspectDirectory, problemsTable, type Findings, type Problem } from '../index/index-verify.ts';
import { fields, type CommandResult } from '../output.ts';
import { startProgress, type Progress } from '../progress.ts';
import type { Manifest } from './archive-format.ts';
import { readArchive, type ArchiveSink } from './archive-reader.ts';
import { withWorkDirectory } from './work-directory.ts';

export interface RestoreOptions {
  readonly config: Config;
  readonly file: string;
  /** The file of the key pepper, for an archive without it. */
  readonly keyPepper?: string;
  /** The pepper is lost: the keys are void, and `key reset` must follow. */
  readonly withoutKeyPepper: boolean;
  /** Goes on when the data directory was damaged before the backup. */
  readonly acceptDamage: boolean;
  readonly signal: AbortSignal;
  readonly stderr: NodeJS.WriteStream;
}

export async function restore(options: RestoreOptions): Promise<CommandResult> {
  assertDataDirectory(options.config, 'maxsimd restore');
  const target = await emptyTarget(options.config.MAXSIMD_DATA_DIR);
  const { size } = await stat(options.file);
  const progress = startProgress(options.stderr, 2 * size);
  try {
    return await restoreTo(target, options, progress);
  } finally {
    progress.stop();
  }
}

async function restoreTo(
  target: string,
  options: RestoreOptions,
  progress: Progress,
): Promise<CommandResult> {
  const { file, signal } = options;
  let bytes = 0;
  const onBytes = (part: number): void => {
    signal.throwIfAborted();
    bytes += part;
    progress.update(bytes, `${mebibytes(bytes)} MiB`);
  };
  const onManifest = (manifest: Manifest): void => assertPepper(manifest, options);
  const { manifest } = await readArchive(file, { onManifest, onBytes });
  const work = `${target}.restoring`;
  const busy = { code: 'restore_failed', message: `another restore makes ${target}` } as const;
  const findings = await withWorkDirectory(work, busy, async () => {
    await unpack(options, work, onBytes);
    const found = await checked(options, work);
    signal.throwIfAborted();
    await rename(work, target);
    await syncDirectory(path.dirname(target));
    return found;
  });
  return resultOf(target, manifest, options, findings);
}

/** The data directory as an absolute path without links; it may be missing, and must hold nothing. */
async function emptyTarget(directory: string): Promise<string> {
  const refuse = (reason: string): never => {
    throw new CommandFailure(
      'restore_failed',
      `the data directory ${directory} ${reason}. Nothing was changed`,
    );
  };
  try {
    if ((await readdir(directory)).length > 0) refuse('is not empty');
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error;
    await mkdir(path.dirname(path.resolve(directory)), { recursive: true });
    return path.resolve(directory);
  }
  const target = await realpath(directory);
  const parent = await stat(path.dirname(target));
  if ((await stat(target)).dev !== parent.dev)
    refuse('is a file system of its own: take a directory inside it');
  return target;
}

function assertPepper(manifest: Manifest, { file, keyPepper, withoutKeyPepper }: RestoreOptions): void {
  if (manifest.key_pepper && (keyPepper !== undefined || withoutKeyPepper)) {
    throw new CommandFailure(
      'usage_error',
      `${file} holds the key pepper: leave out --key-pepper and --without-key-pepper`,
    );
  }
  if (manifest.key_pepper || keyPepper !== undefined || withoutKeyPepper) return;
  throw new CommandFailure(
    'restore_failed',
    `${file} holds no key pepper, and without it no API key is valid: give its copy with --key-pepper FILE, or restore ` +
      'with --without-key-pepper and make new keys after "maxsimd key reset"',
  );
}

async function unpack(
  { file, keyPepper }: RestoreOptions,
  work: string,
  onBytes: (bytes: number) => void,
): Promise<void> {
  const sink = new DirectorySink(work);
  try {
    await readArchive(file, { sink, onBytes });
  } finally {
    await sink.close();
  }
  if (keyPepper !== undefined) {
    await writeFile(path.join(work, keyPepperFile), await readFile(keyPepper), { mode: 0o600, flush: true });
  }
  await sink.sync();
}

/** Throws what the archive is refused for; returns what it holds, with the damage that was accepted. */
async function checked(
  { config, file, withoutKeyPepper, acceptDamage }: RestoreOptions,
  work: string,
): Promise<Findings> {
  const findings = await inspectDirectory({ ...config, MAXSIMD_DATA_DIR: work }, { index: undefined });
  for (const database of [catalogFile, usageFile]) {
    for (const ending of ['-wal', '-shm']) await rm(path.join(work, database + ending), { force: true });
  }
  const problems = findings.problems.filter(
    (problem) => !(withoutKeyPepper && problem.file === keyPepperFile) && !isDerived(problem),
  );
  const fatal = problems.find(({ index_id: indexId }) => indexId === '');
  if (fatal !== undefined) {
    throw new CommandFailure(
      'archive_refused',
      `${file}: ${fatal.file} ${fatal.problem}. Nothing was changed`,
    );
  }
  const [first] = problems;
  if (first !== undefined && !acceptDamage) {
    throw new CommandFailure(
      'archive_refused',
      `${file} is of a damaged data directory (${problems.length} problems; ${first.file}: ${first.problem}). ` +
        'Nothing was changed. --accept-damage restores it all the same; the damaged indexes will answer 500',
    );
  }
  return { ...findings, problems };
}

/** The service builds it anew. */
function isDerived({ file }: Problem): boolean {
  return Object.values(derivedEndings).some((ending) => file.endsWith(ending));
}

function resultOf(
  target: string,
  manifest: Manifest,
  { file, withoutKeyPepper }: RestoreOptions,
  { indexes, segments, records, problems }: Findings,
): CommandResult {
  const text = [
    fields([
      ['data directory', target],
      ['archive', file],
      ['made at', manifest.created_at],
      ['indexes', String(indexes)],
      ['segments', String(segments)],
      ['records', String(records)],
    ]),
    ...(withoutKeyPepper
      ? ['No API key is valid. Make others: maxsimd key reset, then maxsimd key create']
      : []),
    ...(problems.length === 0 ? [] : [problemsTable(problems)]),
  ];
  return {
    document: {
      directory: target,
      created_at: manifest.created_at,
      maxsimd: manifest.maxsimd,
      indexes,
      segments,
      records,
      problems,
    },
    text: text.join('\n'),
  };
}

/** Files below a directory; `sync` makes them durable. */
class DirectorySink implements ArchiveSink {
  readonly #root: string;
  readonly #directories: Set<string>;
  #file: FileHandle | undefined;

  constructor(root: string) {
    this.#root = root;
    this.#directories = new Set([root]);
  }

  async begin(name: string): Promise<void> {
    const file = path.join(this.#root, name);
    for (let at = path.dirname(file); !this.#directories.has(at); at = path.dirname(at))
      this.#directories.add(at);
    await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
    this.#file = await open(file, 'wx', 0o600);
  }

  async write(part: Buffer): Promise<void> {
    for (let at = 0; at < part.length;) {
      at += (await this.#file!.write(part, at, part.length - at)).bytesWritten;
    }
  }

  async end(): Promise<void> {
    await this.#file!.sync();
    await this.close();
  }

  async close(): Promise<void> {
    await this.#file?.close();
    this.#file = undefined;
  }

  async sync(): Promise<void> {
    for (const directory of this.#directories) await syncDirectory(directory);
  }
}
