/** Unpacks an archive into a directory that nobody uses, and checks that the files belong together. */
import { open, rm, writeFile, type FileHandle } from 'node:fs/promises';
import path from 'node:path';
import { makeDirectories } from '../../process/make-directories.ts';
import { keyPepperFile } from '../../catalog/key-pepper.ts';
import { catalogFile } from '../../catalog/sqlite/catalog-files.ts';
import { usageFile } from '../../catalog/sqlite/usage/usage-store.ts';
import { syncDirectory } from '../../catalog/sync-directory.ts';
import { derivedEndings, segmentOfColumn } from '../../index/segments/derived-data.ts';
import { CommandFailure } from '../failure.ts';
import type { Findings, Problem } from '../index/findings.ts';
import { inspectDirectory } from '../index/index-verify.ts';
import { readArchive, type ArchiveSink } from './archive-reader.ts';
import type { RestoreOptions } from './restore.ts';

interface Unpacking {
  readonly file: string;
  /** Written if the archive has none. */
  readonly keyPepper: Uint8Array | undefined;
  readonly work: string;
  readonly onBytes: (bytes: number) => void;
}

export async function unpack({ file, keyPepper, work, onBytes }: Unpacking): Promise<void> {
  const sink = new DirectorySink(work);
  try {
    await readArchive(file, { sink, onBytes });
  } finally {
    await sink.close();
  }
  if (keyPepper !== undefined) {
    await writeFile(path.join(work, keyPepperFile), keyPepper, { mode: 0o600, flush: true });
  }
  await sink.sync();
}

/** Throws the reason to refuse the archive. Returns its contents, with the damage that was accepted. */
export async function checked(
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

/** The service rebuilds derived data. No archive that `maxsimd backup` writes has columns. */
function isDerived({ file }: Problem): boolean {
  const isBuilt = Object.values(derivedEndings).some((ending) => file.endsWith(ending));
  return isBuilt || segmentOfColumn(file) !== undefined;
}

/** Writes files into a directory. `sync` makes them durable. */
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
    makeDirectories(path.dirname(file), 0o700);
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
