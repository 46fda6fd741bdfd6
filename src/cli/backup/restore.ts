/**
 * `maxsimd restore`: makes a data directory of an archive. It reads the archive to its end before it writes anything. Then
 * it unpacks the archive beside the data directory, and checks the pages of the catalog, the key pepper and each record
 * there. A rename makes it the data directory. After a crash, the data directory is either as before or complete.
 */
import { readdir, readFile, realpath, rename, stat } from 'node:fs/promises';
import path from 'node:path';
import { makeDirectories } from '../../process/make-directories.ts';
import { syncDirectory } from '../../catalog/sync-directory.ts';
import { isClustered, type Config } from '../../app/config.ts';
import { hasCode } from '../../system-errors.ts';
import { CommandFailure } from '../failure.ts';
import { problemsTable } from '../index/findings.ts';
import type { CommandResult } from '../output.ts';
import { withByteProgress } from '../progress.ts';
import type { Manifest } from './archive-format.ts';
import { readArchive } from './archive-reader.ts';
import { restoreResult } from './restore-result.ts';
import { checked, unpack } from './unpacked.ts';
import { withWorkDirectory } from './work-directory.ts';

export interface RestoreOptions {
  readonly config: Config;
  readonly file: string;
  /** File of the key pepper, for an archive without it. */
  readonly keyPepper?: string;
  /** The pepper is lost. No key is valid, and `key reset` must follow. */
  readonly withoutKeyPepper: boolean;
  /** Restores a data directory that was damaged before the backup, too. */
  readonly acceptDamage: boolean;
  readonly signal: AbortSignal;
  readonly stderr: NodeJS.WriteStream;
}

export async function restore(options: RestoreOptions): Promise<CommandResult> {
  if (isClustered(options.config)) {
    const { restoreCluster } = await import('./cluster-restore.ts');
    return await restoreCluster(options);
  }
  const target = await emptyTarget(options.config.MAXSIMD_DATA_DIR);
  const { size } = await stat(options.file);
  return await withByteProgress(options, 2 * size, (onBytes) => restoreTo(target, options, onBytes));
}

async function restoreTo(
  target: string,
  options: RestoreOptions,
  onBytes: (bytes: number) => void,
): Promise<CommandResult> {
  const { file, signal } = options;
  const onManifest = (manifest: Manifest): void => assertPepper(manifest, options);
  const { manifest } = await readArchive(file, { onManifest, onBytes });
  const work = `${target}.restoring`;
  const busy = { code: 'restore_failed', message: `another restore makes ${target}` } as const;
  const findings = await withWorkDirectory(work, busy, async () => {
    const keyPepper = options.keyPepper === undefined ? undefined : await readFile(options.keyPepper);
    await unpack({ file, keyPepper, work, onBytes });
    const found = await checked(options, work);
    signal.throwIfAborted();
    await rename(work, target);
    await syncDirectory(path.dirname(target));
    return found;
  });
  return restoreResult({ file: options.file, directory: target, manifest }, findings, [
    ...(options.withoutKeyPepper
      ? ['No API key is valid. Make others: maxsimd key reset, then maxsimd key create']
      : []),
    ...(findings.problems.length === 0 ? [] : [problemsTable(findings.problems)]),
  ]);
}

/** The data directory, as an absolute path without links. It must be empty or missing. */
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
    makeDirectories(path.dirname(path.resolve(directory)));
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
