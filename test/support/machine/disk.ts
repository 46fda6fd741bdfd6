/**
 * A disk to fill, to make read-only, to make unreadable, to let fail and to cut the power of, for processes of their own:
 * `disk-shim.cpp` stands between them and the C library. So these tests need neither a mount nor the rights to make one.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { assertInvariant } from '../../../src/errors.ts';
import { DiskImage, nothingSurvives } from './disk-image.ts';
import { DiskLog } from './disk-log.ts';
import { DiskState } from './disk-state.ts';
import { hasCompiler, sharedLibrary } from './shared-library.ts';
import { newDirectory } from './temporary-directory.ts';

/** Why there are no such disks here; `undefined`: there are. */
export const noDisks: string | undefined =
  process.platform !== 'linux'
    ? 'the C library of this system cannot be stood in front of'
    : hasCompiler()
      ? undefined
      : 'there is no C++ compiler';

export interface DiskOptions {
  /** Where it is found, absolute; a fresh place by default. */
  readonly directory?: string;
  /** What is done to it is logged, so that its power can be cut. Then it survives no power cut of the machine itself. */
  readonly logged?: boolean;
}

export class Disk {
  /** What is on it; for processes of their own to make. */
  readonly directory: string;
  readonly state: DiskState;
  readonly environment: Readonly<Record<string, string>>;
  readonly #root: string;
  readonly #log: { readonly entries: DiskLog; readonly image: DiskImage } | undefined;
  #cuts = 0;

  /** Without a bound, and empty, but for what is in `directory` already. */
  static async make(options: DiskOptions = {}): Promise<Disk> {
    const root = await newDirectory();
    return new Disk(root, options.directory ?? path.join(root, 'disk'), options.logged ?? false);
  }

  private constructor(root: string, directory: string, logged: boolean) {
    this.#root = root;
    this.directory = directory;
    mkdirSync(directory, { recursive: true });
    this.state = DiskState.create(path.join(root, 'state'));
    this.setFreeBytes(undefined);
    const log = path.join(root, 'log');
    writeFileSync(log, '');
    this.environment = {
      LD_PRELOAD: sharedLibrary(
        'disk-shim',
        ['disk-shim.cpp', 'disk-shim.h'].map((file) => `test/support/machine/${file}`),
      ),
      DISK_SHIM_ROOT: directory,
      DISK_SHIM_STATE: path.join(root, 'state'),
      DISK_SHIM_NOTES: path.join(root, 'notes'),
      ...(logged && { DISK_SHIM_LOG: log }),
    };
    this.#log = logged ? { entries: new DiskLog(log), image: new DiskImage(directory) } : undefined;
  }

  /** By so much its files may grow; `undefined`: without a bound. */
  setFreeBytes(bytes: number | undefined): void {
    this.state.set('freeBytes', bytes ?? -1);
  }

  freeBytes(): number {
    return this.state.get('freeBytes');
  }

  setReadOnly(readOnly: boolean): void {
    this.state.set('readOnly', readOnly ? 1 : 0);
  }

  /** What it held when logging began, and what was done to it since; both are the caller's to go on with. */
  recording(): { readonly entries: DiskLog; readonly image: DiskImage } {
    assertInvariant(this.#log !== undefined, 'a logged disk');
    return this.#log;
  }

  /** Before the tests of the file are over, where there are many disks. */
  remove(): void {
    for (const directory of [this.directory, this.#root]) rmSync(directory, { recursive: true, force: true });
  }

  /** A directory with what a power cut is sure to leave now. */
  cutPower(): string {
    const { entries, image } = this.recording();
    for (const entry of entries.next()) image.apply(entry);
    this.#cuts += 1;
    const left = path.join(this.#root, `left-${this.#cuts}`);
    image.write(left, nothingSurvives);
    return left;
  }
}
