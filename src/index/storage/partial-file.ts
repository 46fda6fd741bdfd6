/**
 * A local copy of an object that is used while it is being fetched. The file has its full length, with holes for missing
 * parts. A reader asks for the parts that it needs and waits for those alone. The rest follows in order. Parts carry no
 * checksum, so a reader must verify what it reads. When all parts are here the SHA-256 is compared, and the file gets
 * its name.
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
  readonly path: string;
  /** The file is moved here when it is whole. */
  readonly wholePath: string;
  readonly objects: Pick<ObjectStore, 'readPart'>;
  /** All files share these turns for parts that no reader waits for. */
  readonly inTurn: ReturnType<typeof turns>;
  /** Called when a part that no reader waits for cannot be fetched. It is tried again. */
  readonly onError: (error: unknown) => void;
  /** Called when the file is whole, or never will be. */
  readonly onEnd: () => void;
}

/** The parts that one caller wants. */
interface Wanted {
  readonly parts: readonly number[];
  /** The place in `parts` up to which all is here or requested. */
  next: number;
  /** Other callers' requests for some of these parts. */
  readonly others: Set<Promise<void>>;
}

interface Run {
  readonly first: number;
  readonly count: number;
}

/** A search reads a few KiB anywhere in the file for each candidate. A request for less than this would take as long. */
const partBytes = 256 * 1024;
const requestPartsMax = 8;
/** Requests that one caller has under way. */
const requestsAtOnce = 32;
const retryMs = 1_000;

export class PartialFile implements PartialCopy {
  readonly partBytes = partBytes;
  readonly parts: Uint8Array;
  readonly #options: PartialFileOptions;
  readonly #handle: FileHandle;
  readonly #count: number;
  /** Parts that were requested and are not here yet. */
  readonly #requested = new Map<number, Promise<void>>();
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

  async discard(): Promise<void> {
    if (this.#discarded) return;
    this.#discarded = true;
    await rm(this.#options.path, { force: true });
    await this.#handle.close();
  }

  #has(part: number): boolean {
    return ((this.parts[part >> 3] ?? 0) & (1 << (part & 7))) !== 0;
  }

  /** Requests the parts that nobody has requested, and waits for the requests of others. `parts` ascends. */
  async #fetch(parts: readonly number[], inTurn: <T>(work: () => Promise<T>) => Promise<T>): Promise<void> {
    const wanted: Wanted = { parts, next: 0, others: new Set() };
    const request = async (): Promise<boolean> => {
      const run = this.#nextRun(wanted);
      if (run !== undefined) await this.#request(run);
      return run !== undefined;
    };
    await Promise.all(
      Array.from({ length: requestsAtOnce }, async () => {
        // The parts are chosen when the turn has come: another caller may have requested some while this one waited.
        while (await inTurn(request));
      }),
    );
    await Promise.all(wanted.others);
  }

  /** The next run of wanted parts that nobody has requested. */
  #nextRun(wanted: Wanted): Run | undefined {
    const isDue = (part: number): boolean => !this.#has(part) && !this.#requested.has(part);
    const { parts, others } = wanted;
    for (; wanted.next < parts.length && !isDue(parts[wanted.next]!); wanted.next += 1) {
      const requested = this.#requested.get(parts[wanted.next]!);
      if (requested !== undefined) others.add(requested);
    }
    const first = parts[wanted.next];
    if (first === undefined) return undefined;
    let count = 0;
    while (count < requestPartsMax && parts[wanted.next] === first + count && isDue(first + count)) {
      wanted.next += 1;
      count += 1;
    }
    return { first, count };
  }

  #request(run: Run): Promise<void> {
    const request = this.#load(run).finally(() => {
      for (let part = run.first; part < run.first + run.count; part += 1) this.#requested.delete(part);
    });
    for (let part = run.first; part < run.first + run.count; part += 1) this.#requested.set(part, request);
    return request;
  }

  async #load({ first, count }: Run): Promise<void> {
    const { objects, object } = this.#options;
    const offset = first * partBytes;
    const bytes = Math.min(count * partBytes, object.bytes - offset);
    try {
      const loaded = await objects.readPart(object.key, offset, bytes);
      if (loaded.length !== bytes)
        throw withCode('corrupt', `object ${object.key} is shorter than the object that was put`);
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
      // A copy that was removed meanwhile cannot be renamed. Readers that have it open keep it.
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
    throw withCode('corrupt', `object ${key} has another SHA-256 than the object that was put`);
  }
}
