/**
 * Space for what frees space: a file of the data directory that goes when a delete, or a start, finds the disk full. While
 * it is gone nothing may be added, or what was released would fill up before the next delete; it is made again as
 * soon as there is room.
 */
import { randomBytes } from 'node:crypto';
import { unlinkSync } from 'node:fs';
import { open, stat, statfs } from 'node:fs/promises';
import path from 'node:path';

const reserveFile = 'reserve';
/** The log of the catalog until its checkpoint, with the largest transactions of deletes and purges. */
export const reserveBytes = 8 << 20;
/** A file system that compresses makes nothing of what is random. */
const pieceBytes = 1 << 20;
/** It is made when there is so much room that something is left besides. */
const roomBytes = 2 * reserveBytes;

export class SpaceReserve {
  readonly #directory: string;
  readonly #file: string;
  /** One 32-bit flag, for all threads: whether the reserve is there. */
  readonly shared: SharedArrayBuffer;
  readonly #held: Int32Array;

  /** Taken to be there until `release` or `keep` finds otherwise. `shared`: that of another thread. */
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

  /** Whether there is more space now. */
  release(): boolean {
    Atomics.store(this.#held, 0, 0);
    try {
      unlinkSync(this.#file);
      return true;
    } catch {
      // It is gone already, or the disk is not full but failing or read-only, as the caller found.
      return false;
    }
  }

  /** Makes it, if it is not there and there is room. */
  async keep(): Promise<void> {
    const found = await stat(this.#file).catch(() => undefined);
    const there = found?.size === reserveBytes || ((await this.#hasRoom()) && (await this.#make()));
    Atomics.store(this.#held, 0, there ? 1 : 0);
  }

  /** At the end of a process: as much of it as there is space for, so that the next start has some. */
  async leave(): Promise<void> {
    const found = await stat(this.#file).catch(() => undefined);
    if (found === undefined) await this.#make();
  }

  async #hasRoom(): Promise<boolean> {
    const { bavail, bsize } = await statfs(this.#directory);
    return bavail * bsize >= roomBytes;
  }

  /** Whether it is whole. */
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
