/**
 * A disk to fill, to make read-only, to make unreadable and to cut the power of, for processes of their own:
 * `disk-shim.cpp` stands between them and the C library. So these tests need neither a mount nor the rights to make one.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  readdirSync,
  renameSync,
  writeSync,
} from 'node:fs';
import path from 'node:path';
import { newDirectory } from './temporary-directory.ts';

/** Why there are no such disks here; `undefined`: there are. */
export const noDisks: string | undefined =
  process.platform !== 'linux'
    ? 'the C library of this system cannot be stood in front of'
    : spawnSync('c++', ['--version']).status === 0
      ? undefined
      : 'there is no C++ compiler';

export class Disk {
  /** What is on it; for processes of their own to make. */
  readonly directory: string;
  readonly #synced: string;
  readonly #state: string;
  readonly #library: string;

  /** Empty and without a bound. `directory`: where it is found, absolute; a fresh place by default. */
  static async make(directory?: string): Promise<Disk> {
    const root = await newDirectory();
    const disk = new Disk(root, directory ?? path.join(root, 'disk'), buildLibrary());
    mkdirSync(disk.directory, { recursive: true });
    mkdirSync(disk.#synced);
    disk.setFreeBytes(undefined);
    return disk;
  }

  private constructor(root: string, directory: string, library: string) {
    this.directory = directory;
    this.#synced = path.join(root, 'synced');
    this.#state = path.join(root, 'state');
    this.#library = library;
  }

  /** The environment of a process that is to find the disk. */
  get environment(): Readonly<Record<string, string>> {
    return {
      LD_PRELOAD: this.#library,
      DISK_SHIM_ROOT: this.directory,
      DISK_SHIM_STATE: this.#state,
      DISK_SHIM_SYNCED: this.#synced,
    };
  }

  /** By so much its files may grow; `undefined`: without a bound. */
  setFreeBytes(bytes: number | undefined): void {
    this.#set(0, BigInt(bytes ?? -1));
  }

  freeBytes(): number {
    const state = openSync(this.#state, 'r');
    const bytes = Buffer.alloc(8);
    readSync(state, bytes, 0, 8, 0);
    closeSync(state);
    return Number(bytes.readBigInt64LE());
  }

  setReadOnly(readOnly: boolean): void {
    this.#set(1, readOnly ? 1n : 0n);
  }

  /** The files as a power cut may leave them now: each as it was when it was synced last. */
  cutPower(): string {
    const left = `${this.#synced}-${Date.now()}`;
    cpSync(this.#synced, left, { recursive: true, filter: (name) => !name.endsWith('.new') });
    for (const name of readdirSync(left).filter((file) => file.includes('%'))) {
      const file = path.join(left, ...name.split('%'));
      mkdirSync(path.dirname(file), { recursive: true });
      renameSync(path.join(left, name), file);
    }
    return left;
  }

  #set(place: number, value: bigint): void {
    const state = openSync(this.#state, 'a');
    closeSync(state);
    const file = openSync(this.#state, 'r+');
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(value);
    writeSync(file, bytes, 0, 8, place * 8);
    closeSync(file);
  }
}

/** Built once for each state of its source. */
function buildLibrary(): string {
  const source = path.join(import.meta.dirname, 'disk-shim.cpp');
  const digest = createHash('sha256').update(readFileSync(source)).digest('hex').slice(0, 16);
  const library = path.join(import.meta.dirname, `../../../build/disk-shim-${digest}.so`);
  if (existsSync(library)) return library;
  const temporary = `${library}.${process.pid}`;
  const args = ['-std=c++20', '-O1', '-shared', '-fPIC', '-o', temporary, source, '-ldl'];
  const built = spawnSync('c++', args, { encoding: 'utf8' });
  if (built.status !== 0) throw new Error(built.stderr);
  renameSync(temporary, library);
  return library;
}
