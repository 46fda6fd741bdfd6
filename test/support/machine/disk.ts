/**
 * A simulated disk that a test can fill, make read-only or unreadable, let fail, or cut the power of. Processes that use it load
 * `disk-shim.cpp` before the C library. So these tests need neither a mount nor the rights to make one.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { assertInvariant } from '../../../src/errors.ts';
import { DiskImage, nothingSurvives } from './disk-image.ts';
import { DiskLog } from './disk-log.ts';
import { DiskState } from './disk-state.ts';
import { hasCompiler, sharedLibrary } from './shared-library.ts';
import { newDirectory } from './temporary-directory.ts';

/** The reason why there are no simulated disks here; `undefined` = there are. */
export const noDisks: string | undefined =
  process.platform !== 'linux'
    ? 'the C library of this system cannot be stood in front of'
    : hasCompiler()
      ? undefined
      : 'there is no C++ compiler';

export interface DiskOptions {
  /** The directory of the disk, as an absolute path; absent = a new directory. */
  readonly directory?: string;
  /** Calls that change the disk are logged, so that its power can be cut. Nothing is really synced then. */
  readonly logged?: boolean;
}

export class Disk {
  /** The directory of the disk. Only processes with `environment` must change it. */
  readonly directory: string;
  readonly state: DiskState;
  readonly environment: Readonly<Record<string, string>>;
  readonly #root: string;
  readonly #log: { readonly entries: DiskLog; readonly image: DiskImage } | undefined;
  #cuts = 0;

  /** Makes a disk without a bound. It is empty, or has the present content of `directory`. */
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

  /** Sets by how many bytes files may grow; `undefined` = without a bound. */
  setFreeBytes(bytes: number | undefined): void {
    this.state.set('freeBytes', bytes ?? -1);
  }

  freeBytes(): number {
    return this.state.get('freeBytes');
  }

  setReadOnly(readOnly: boolean): void {
    this.state.set('readOnly', readOnly ? 1 : 0);
  }

  /** The content of the disk when logging began, and the log since. The caller reads on from there. */
  recording(): { readonly entries: DiskLog; readonly image: DiskImage } {
    assertInvariant(this.#log !== undefined, 'a logged disk');
    return this.#log;
  }

  /** Removes the disk early. Tests with many disks need that for space. */
  remove(): void {
    for (const directory of [this.directory, this.#root]) rmSync(directory, { recursive: true, force: true });
  }

  /** Makes a directory with the content that is sure to survive a power cut now. */
  cutPower(): string {
    const { entries, image } = this.recording();
    for (const entry of entries.next()) image.apply(entry);
    this.#cuts += 1;
    const left = path.join(this.#root, `left-${this.#cuts}`);
    image.write(left, nothingSurvives);
    return left;
  }
}
