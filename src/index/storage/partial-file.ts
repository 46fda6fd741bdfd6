/**
 * A local copy of an object that is used while it is being fetched: a file of its full length, in which what has not come
 * is a hole. Whoever lacks parts asks for them and waits for those alone; the rest follows in order. Parts carry no
 * checksum: whoever reads one must check what it reads. Once all have come, the SHA-256 is compared, and the file gets its name.
 */
import { createHash } from 'node:crypto';
import { open, rename, rm, type FileHandle } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { fromSystem, hasCode, storageUnavailable, withCode } from '../../system-errors.ts';
import type { CachedFile, PartialCopy } from './blob-cache.ts';
import type { ObjectStore } from './object-store.ts';
import type { turns } from './turns.ts';

export interface PartialFileOptions {
  readonly object: CachedFile;
  /** Where it is written. */
  readonly path: string;
  /** Where it lies once it is whole. */
  readonly wholePath: string;
  readonly objects: Pick<ObjectStore, 'readPart'>;
  /** Requests of all files for what nobody waits for. */
  readonly inTurn: ReturnType<typeof turns>;
  /** The rest cannot be fetched at the moment. */
  readonly onError: (error: unknown) => void;
  /** It is whole, or never will be. */
  readonly onEnd: () => void;
}

/** Parts that somebody wants. */
interface Rest {
  readonly parts: readonly number[];
  next: number;
  /** Requests for some of them that somebody else has made. */
  readonly others: Set<Promise<void>>;
}

interface Run {
  readonly first: number;
  readonly count: number;
}

/** A candidate of a search is a few KiB, anywhere in the file; a request for less would take as long. */
const partBytes = 256 * 1024;
/** Parts of one request, at most. */
const requestParts = 8;
/** Requests of one search under way, and of one file for its rest. */
const requestsAtOnce = 32;
const retryMs = 1_000;

export class PartialFile implements PartialCopy {
  readonly partBytes = partBytes;
  readonly parts: Uint8Array;
  readonly #options: PartialFileOptions;
  readonly #handle: FileHandle;
  readonly #count: number;
  /** Parts on their way. */
  readonly #coming = new Map<number, Promise<void>>();
  #completing: Promise<void> | undefined;
  #discarded = false;

  private constructor(options: PartialFileOptions, handle: FileHandle) {
    this.#options = options;
    this.#handle = handle;
    this.#count = Math.ceil(options.object.bytes / partBytes);
    this.parts = new Uint8Array(Math.ceil(this.#count / 8));
  }

  static async create(options: PartialFileOptions): Promise<PartialFile> {
    const handle = await open(options.path, 'wx+', 0o600);
    await handle.truncate(options.object.bytes);
    return new PartialFile(options, handle);
  }

  get path(): string {
    return this.#options.path;
  }

  needEnds(lastParts: number): Promise<void> {
    const last = Math.max(1, this.#count - lastParts);
    return this.need([0, ...Array.from({ length: this.#count - last }, (_part, place) => last + place)]);
  }

  need(parts: readonly number[]): Promise<void> {
    return this.#fetch(parts, (work) => work());
  }

  complete(): Promise<void> {
    if (this.#completing === undefined) {
      this.#completing = this.#complete();
      this.#completing.catch(() => undefined);
    }
    return this.#completing;
  }

  /** Nobody will use it. */
  async discard(): Promise<void> {
    if (this.#discarded) return;
    this.#discarded = true;
    await rm(this.#options.path, { force: true });
    await this.#handle.close();
  }

  #has(part: number): boolean {
    return ((this.parts[part >> 3] ?? 0) & (1 << (part & 7))) !== 0;
  }

  /** Requests what of ascending parts nobody has requested, and waits for the others' requests, too. */
  async #fetch(parts: readonly number[], inTurn: <T>(work: () => Promise<T>) => Promise<T>): Promise<void> {
    const rest: Rest = { parts, next: 0, others: new Set() };
    const request = async (): Promise<boolean> => {
      const run = this.#nextRun(rest);
      if (run !== undefined) await this.#request(run);
      return run !== undefined;
    };
    await Promise.all(
      Array.from({ length: requestsAtOnce }, async () => {
        // What to request is decided when the turn has come: searches may have requested it meanwhile.
        while (await inTurn(request));
      }),
    );
    await Promise.all(rest.others);
  }

  #nextRun(rest: Rest): Run | undefined {
    const isDue = (part: number): boolean => !this.#has(part) && !this.#coming.has(part);
    const { parts, others } = rest;
    for (; rest.next < parts.length && !isDue(parts[rest.next]!); rest.next += 1) {
      const coming = this.#coming.get(parts[rest.next]!);
      if (coming !== undefined) others.add(coming);
    }
    const first = parts[rest.next];
    if (first === undefined) return undefined;
    let count = 0;
    while (count < requestParts && parts[rest.next] === first + count && isDue(first + count)) {
      rest.next += 1;
      count += 1;
    }
    return { first, count };
  }

  #request(run: Run): Promise<void> {
    const coming = this.#load(run).finally(() => {
      for (let part = run.first; part < run.first + run.count; part += 1) this.#coming.delete(part);
    });
    for (let part = run.first; part < run.first + run.count; part += 1) this.#coming.set(part, coming);
    return coming;
  }

  async #load({ first, count }: Run): Promise<void> {
    const { objects, object } = this.#options;
    const offset = first * partBytes;
    const bytes = Math.min(count * partBytes, object.bytes - offset);
    try {
      const loaded = await objects.readPart(object.key, offset, bytes);
      if (loaded.length !== bytes)
        throw withCode('corrupt', `object ${object.key} is shorter than what was put`);
      for (let written = 0; written < bytes;) {
        const left = bytes - written;
        written += (await this.#handle.write(loaded, written, left, offset + written)).bytesWritten;
      }
    } catch (error) {
      throw this.#discarded ? storageUnavailable(error) : fromSystem(error);
    }
    for (let part = first; part < first + count; part += 1) this.parts[part >> 3]! |= 1 << (part & 7);
  }

  async #complete(): Promise<void> {
    const { path, wholePath, onEnd } = this.#options;
    try {
      await this.#fetchAll();
      await this.#verify();
      // A copy that was removed meanwhile has no name. Who has it open keeps what it reads.
      await rename(path, wholePath).catch((error: unknown) => {
        if (!hasCode(error, 'ENOENT')) throw error;
      });
      await this.#handle.close();
    } catch (error) {
      await this.discard();
      throw error;
    } finally {
      onEnd();
    }
  }

  async #fetchAll(): Promise<void> {
    const all = Array.from({ length: this.#count }, (_part, place) => place);
    for (let isFailing = false; ;) {
      try {
        await this.#fetch(all, this.#options.inTurn);
        if (all.every((part) => this.#has(part))) return;
      } catch (error) {
        if (this.#discarded || hasCode(error, 'ENOENT', 'corrupt')) throw error;
        if (!isFailing) this.#options.onError(error);
        isFailing = true;
        await pause(retryMs, undefined, { ref: false });
      }
    }
  }

  async #verify(): Promise<void> {
    const { key, sha256 } = this.#options.object;
    const hash = createHash('sha256');
    const content = this.#handle.createReadStream({ start: 0, autoClose: false, highWaterMark: 1024 * 1024 });
    for await (const chunk of content) hash.update(chunk as Buffer);
    if (hash.digest('hex') === sha256) return;
    throw withCode('corrupt', `object ${key} has another SHA-256 than what was put`);
  }
}
