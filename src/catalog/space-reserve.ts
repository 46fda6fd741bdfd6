/**
 * A reserve of disk space: a file in the data directory. On a full disk a deletion needs some space before it frees any, and so
 * does a start. Then the reserve is deleted. While it is gone nothing may be added, because that would use up the space before
 * the next deletion. It is made again as soon as there is room.
 */
import { randomBytes } from 'node:crypto';
import { unlinkSync } from 'node:fs';
import { open, stat, statfs } from 'node:fs/promises';
import path from 'node:path';

const reserveFile = 'reserve';
/** Holds the write-ahead log of the catalog until its checkpoint, with the largest transactions of deletions and purges. */
export const reserveBytes = 8 << 20;
/** The file holds repeated pieces of random bytes, which file systems cannot compress. */
const pieceBytes = 1 << 20;
/** It is made when so much is free, so that some room is left beside it. */
const roomBytes = 2 * reserveBytes;

export class SpaceReserve {
  readonly #directory: string;
  readonly #file: string;
  /** A 32-bit flag that all threads share: 1 while the reserve exists. */
  readonly shared: SharedArrayBuffer;
  readonly #held: Int32Array;

  /** The reserve is assumed to exist until `release` or `keep` finds otherwise. `shared`: the flag of another thread. */
  constructor(directory: string, shared?: SharedArrayBuffer) {
    this.#directory = directory;
    this.#file = path.join(directory, reserveFile);
    this.shared = shared ?? new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
    this.#held = new Int32Array(this.shared);
    if (shared === undefined) Atomics.store(this.#held, 0, 1);
  }

  get held(): boolean {
    return Atomics.load(this.#held, 0) === 1;
  }

  /** Deletes the reserve. Returns whether that freed space. */
  release(): boolean {
    Atomics.store(this.#held, 0, 0);
    try {
      unlinkSync(this.#file);
      return true;
    } catch {
      // The reserve is gone already, or the disk fails or is read-only. The caller reports its own error.
      return false;
    }
  }

  /** Makes the reserve if it is missing and there is room. */
  async keep(): Promise<void> {
    const found = await stat(this.#file).catch(() => undefined);
    const there = found?.size === reserveBytes || ((await this.#hasRoom()) && (await this.#make()));
    Atomics.store(this.#held, 0, there ? 1 : 0);
  }

  /** Makes as much of a missing reserve as fits, for the next start. Called at the end of a process. */
  async leave(): Promise<void> {
    const found = await stat(this.#file).catch(() => undefined);
    if (found === undefined) await this.#make();
  }

  async #hasRoom(): Promise<boolean> {
    const { bavail, bsize } = await statfs(this.#directory);
    return bavail * bsize >= roomBytes;
  }

  /** Returns whether the whole reserve was made. */
  async #make(): Promise<boolean> {
    try {
      const piece = randomBytes(pieceBytes);
      await using file = await open(this.#file, 'w', 0o600);
      for (let at = 0; at < reserveBytes; at += pieceBytes) {
        const { bytesWritten } = await file.write(piece, 0, pieceBytes, at);
        if (bytesWritten < pieceBytes) return false;
      }
      await file.sync();
      return true;
    } catch {
      return false;
    }
  }
}
