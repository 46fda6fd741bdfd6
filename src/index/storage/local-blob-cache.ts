/**
 * Copies of objects as files of one directory. Nothing in it is synced, so the files lie in a folder that is named by the
 * start of the machine, and files of earlier starts are removed. The processes of the host share nothing but the
 * directory. A whole file appears by a rename. A reader that has a file mapped keeps it after its removal.
 *
 * The file `epoch` says in which epoch of the catalog the copies were trusted last. A process compares a copy that is older
 * than that file with its checksum, and then sets the time of its last change, so that no other process compares it again.
 *
 * When the cache is larger than its bound, the files that were used longest ago go. The last use is the later of two times: the
 * time of access, which a fetch sets, and the time of the last change, which keeps what another process is writing.
 */
import { createHash, randomUUID } from 'node:crypto';
import { createReadStream, type Stats } from 'node:fs';
import { readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { makeDirectories } from '../../process/make-directories.ts';
import { fromSystem, hasCode, storageUnavailable } from '../../system-errors.ts';
import { SharedRuns } from '../../shared-runs.ts';
import type { BlobCache, CachedFile, OpenCopy } from './blob-cache.ts';
import { freeBytesOf, makeDirectory, pathOf } from './local-files.ts';
import type { ObjectStore } from './object-store.ts';
import { PartialFile } from './partial-file.ts';
import { turns } from './turns.ts';

export interface BlobCacheOptions {
  readonly directory: string;
  readonly objects: ObjectStore;
  readonly bytesMax: number;
  /** Called when an eviction fails. It is tried again with the next file. */
  readonly onError: (error: unknown) => void;
}

const bootFile = '/proc/sys/kernel/random/boot_id';
const epochFile = 'epoch';
/** Part of the name of a file that is not whole yet. */
const partial = '.part-';
/** An eviction frees this share of the bound, so that not every new file evicts. */
const evictedShare = 0.1;
/** Requests under way for parts that no reader waits for. */
const unawaitedRequestsMax = 8;
/** A partial file that was not written for this long has been given up. */
const partialAgeMs = 3_600_000;

/** Opens the cache and removes the copies of earlier starts of the machine, which may not be whole. */
export async function openBlobCache(options: BlobCacheOptions): Promise<BlobCache> {
  const directory = path.resolve(options.directory);
  const boot = await readFile(bootFile, 'utf8').then((text) => text.trim(), randomUUID);
  const root = path.join(directory, boot);
  makeDirectories(root, 0o700);
  const earlier = (await readdir(directory)).filter((name) => name !== boot);
  for (const name of earlier) {
    // Another process that starts now removes the same folder.
    const removal = rm(path.join(directory, name), { recursive: true, force: true, maxRetries: 3 });
    await removal.catch(options.onError);
  }
  const cache = new LocalBlobCache(root, options);
  await cache.count();
  return cache;
}

class LocalBlobCache implements BlobCache {
  readonly #root: string;
  readonly #options: BlobCacheOptions;
  readonly #fetches = new SharedRuns<string>();
  /** Files that are read while they are being fetched; `undefined` where the whole file was here. */
  readonly #partials = new Map<string, Promise<PartialFile | undefined>>();
  readonly #inTurn = turns(unawaitedRequestsMax);
  /** Files that were created and not yet adopted. They are never evicted. */
  readonly #written = new Set<string>();
  /** Other processes add and remove files, too. So each eviction counts again. */
  readonly statistics;
  #isEvicting = false;
  #epoch: { readonly name: string; readonly followed: Promise<void> } | undefined;
  /** Files that were last changed before this time are compared with their checksums. */
  #trustedMs = 0;

  constructor(root: string, options: BlobCacheOptions) {
    this.#root = root;
    this.#options = options;
    const { bytesMax } = options;
    this.statistics = { bytesMax, bytes: 0, files: 0, hits: 0, misses: 0, evictions: 0 };
  }

  followEpoch(name: string): Promise<void> {
    if (this.#epoch?.name === name) return this.#epoch.followed;
    const following = {
      name,
      followed: this.#followEpoch(name).catch((error: unknown) => {
        if (this.#epoch === following) this.#epoch = undefined;
        throw fromSystem(error);
      }),
    };
    this.#epoch = following;
    return following.followed;
  }

  fetch(file: CachedFile): Promise<string> {
    return this.#fetches.run(() => this.#fetch(file), file.name);
  }

  async verify(
    object: CachedFile,
    spend?: (bytes: number) => Promise<void>,
  ): Promise<'intact' | 'damaged' | 'absent'> {
    try {
      return (await this.#isObject(object, spend)) ? 'intact' : 'damaged';
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return 'absent';
      throw error;
    }
  }

  async open(object: CachedFile): Promise<OpenCopy> {
    const file = pathOf(this.#root, object.name);
    const copy = await (this.#partials.get(object.name) ?? this.#newPartial(object));
    if (copy === undefined) return { path: file };
    if (await exists(copy.path)) return { path: file, partial: copy };
    // It became whole meanwhile, or another process removed it as one that was given up.
    await this.#discardPartial(object.name);
    return this.open(object);
  }

  async create(name: string): Promise<string> {
    const file = pathOf(this.#root, name);
    this.#written.add(file);
    await makeDirectory(path.dirname(file));
    return file;
  }

  async adopt(name: string): Promise<void> {
    const file = pathOf(this.#root, name);
    this.#added((await stat(file)).size);
    this.#written.delete(file);
  }

  async list(prefix: string): Promise<readonly { readonly name: string }[]> {
    const [indexId = ''] = prefix.split('/', 1);
    const folder = path.dirname(pathOf(this.#root, `${indexId}/any`));
    const names = await readdir(folder).catch((error: unknown) => {
      if (!hasCode(error, 'ENOENT')) throw error;
      return [];
    });
    return names
      .map((name) => ({ name: `${indexId}/${name}` }))
      .filter(({ name }) => name.startsWith(prefix) && !name.includes(partial));
  }

  async remove(name: string): Promise<void> {
    const file = pathOf(this.#root, name);
    await this.#discardPartial(name);
    await rm(file, { force: true });
    this.#written.delete(file);
  }

  async indexIds(): Promise<readonly string[]> {
    const entries = await readdir(this.#root, { withFileTypes: true });
    return entries.flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
  }

  async removeIndex(indexId: string): Promise<void> {
    const folder = path.dirname(pathOf(this.#root, `${indexId}/any`));
    for (const name of this.#partials.keys())
      if (name.startsWith(`${indexId}/`)) await this.#discardPartial(name);
    // A download may add a file meanwhile.
    await rm(folder, { recursive: true, force: true, maxRetries: 3 });
    for (const file of this.#written) if (path.dirname(file) === folder) this.#written.delete(file);
  }

  freeBytes(): Promise<number> {
    return freeBytesOf(this.#root);
  }

  /** Counts the files and lists them, least recently used first. Removes partial files that were given up. */
  async count(): Promise<
    readonly { readonly file: string; readonly bytes: number; readonly usedMs: number }[]
  > {
    const files = [];
    for (const indexId of await this.indexIds()) {
      const folder = path.join(this.#root, indexId);
      for (const name of await readdir(folder).catch(() => [])) {
        const file = path.join(folder, name);
        const found = await stat(file).catch(() => undefined);
        if (found?.isFile() !== true) continue;
        if (name.includes(partial) && Date.now() - found.mtimeMs > partialAgeMs)
          await rm(file, { force: true });
        else files.push({ file, bytes: found.size, usedMs: lastUse(found) });
      }
    }
    this.statistics.files = files.length;
    this.statistics.bytes = files.reduce((sum, { bytes }) => sum + bytes, 0);
    return files.toSorted((a, b) => a.usedMs - b.usedMs);
  }

  async #followEpoch(name: string): Promise<void> {
    const file = path.join(this.#root, epochFile);
    if ((await readFile(file, 'utf8').catch(() => undefined)) !== name) {
      const next = `${file}${partial}${randomUUID()}`;
      await writeFile(next, name);
      await rename(next, file);
    }
    this.#trustedMs = (await stat(file)).mtimeMs;
  }

  async #fetch(object: CachedFile): Promise<string> {
    const { name, key, bytes, sha256 } = object;
    const file = pathOf(this.#root, name);
    await (await this.#partials.get(name))?.complete();
    if (await this.#isHit(file, object)) return file;
    const part = await this.#newPart(file);
    try {
      await this.#options.objects.getFile(key, part, { bytes, sha256 });
    } catch (error) {
      await rm(part, { force: true });
      throw error;
    }
    await rename(part, file).catch((error: unknown) => {
      // The folder of the index was removed meanwhile. The caller must not take that for a missing object.
      throw hasCode(error, 'ENOENT') ? storageUnavailable(error) : error;
    });
    this.#added(bytes);
    return file;
  }

  #newPartial(object: CachedFile): Promise<PartialFile | undefined> {
    const { name } = object;
    const opening = this.#openPartial(object, () => {
      forget();
      this.#keepBound();
    });
    const forget = (): void => {
      if (this.#partials.get(name) === opening) this.#partials.delete(name);
    };
    this.#partials.set(name, opening);
    opening.then((copy) => copy ?? forget(), forget);
    return opening;
  }

  async #openPartial(object: CachedFile, onEnd: () => void): Promise<PartialFile | undefined> {
    const wholePath = pathOf(this.#root, object.name);
    await this.#fetches.running(object.name)?.catch(() => undefined);
    if (await this.#isHit(wholePath, object)) return undefined;
    const { objects, onError } = this.#options;
    const copy = await PartialFile.create({
      object,
      path: await this.#newPart(wholePath),
      wholePath,
      objects,
      inTurn: this.#inTurn,
      onError,
      onEnd,
    });
    this.#added(object.bytes);
    return copy;
  }

  async #discardPartial(name: string): Promise<void> {
    const copy = await this.#partials.get(name)?.catch(() => undefined);
    this.#partials.delete(name);
    await copy?.discard();
  }

  /** Returns whether the whole file is here and is the object, and notes its use. */
  async #isHit(file: string, object: CachedFile): Promise<boolean> {
    const isHit = await this.#use(file, object).catch((error: unknown) => {
      if (!hasCode(error, 'ENOENT')) throw error;
      return false;
    });
    this.statistics[isHit ? 'hits' : 'misses'] += 1;
    return isHit;
  }

  async #use(file: string, object: CachedFile): Promise<boolean> {
    const nowMs = Date.now();
    const trustedMs = this.#trustedMs;
    const found = await stat(file);
    if (found.mtimeMs >= trustedMs) {
      await utimes(file, nowMs / 1000, found.mtime);
      return true;
    }
    if (!(await this.#isObject(object))) return false;
    await utimes(file, nowMs / 1000, Math.max(nowMs, Math.ceil(trustedMs)) / 1000);
    return true;
  }

  /** Compares a file with its checksum. One that differs is reported and removed. */
  async #isObject({ name, sha256 }: CachedFile, spend?: (bytes: number) => Promise<void>): Promise<boolean> {
    const file = pathOf(this.#root, name);
    if ((await sha256Of(file, spend)) === sha256) return true;
    this.#options.onError(new Error(`the local copy ${name} is not the object that the catalog names`));
    await rm(file, { force: true });
    return false;
  }

  async #newPart(file: string): Promise<string> {
    await makeDirectory(path.dirname(file));
    return `${file}${partial}${randomUUID()}`;
  }

  #added(bytes: number): void {
    this.statistics.bytes += bytes;
    this.statistics.files += 1;
    this.#keepBound();
  }

  #keepBound(): void {
    if (this.statistics.bytes <= this.#options.bytesMax || this.#isEvicting) return;
    this.#isEvicting = true;
    this.#evictAll()
      .catch(this.#options.onError)
      .finally(() => {
        this.#isEvicting = false;
      });
  }

  /** Evicts again while files came meanwhile, unless nothing more can go. */
  async #evictAll(): Promise<void> {
    for (;;) {
      const before = this.statistics.evictions;
      await this.#evict();
      if (this.statistics.bytes <= this.#options.bytesMax || this.statistics.evictions === before) return;
    }
  }

  async #evict(): Promise<void> {
    const { bytesMax } = this.#options;
    for (const { file, bytes, usedMs } of await this.count()) {
      if (this.statistics.bytes <= bytesMax * (1 - evictedShare)) return;
      if (this.#written.has(file) || file.includes(partial)) continue;
      const found = await stat(file).catch(() => undefined);
      // A caller was given it since and is about to open it.
      if (found !== undefined && lastUse(found) > usedMs) continue;
      await rm(file, { force: true });
      this.statistics.bytes -= bytes;
      this.statistics.files -= 1;
      this.statistics.evictions += 1;
    }
  }
}

async function sha256Of(file: string, spend?: (bytes: number) => Promise<void>): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file, { highWaterMark: 1024 * 1024 })) {
    const bytes = chunk as Buffer;
    await spend?.(bytes.length);
    hash.update(bytes);
  }
  return hash.digest('hex');
}

async function exists(file: string): Promise<boolean> {
  return stat(file).then(
    () => true,
    () => false,
  );
}

function lastUse({ atimeMs, mtimeMs }: Stats): number {
  return Math.max(atimeMs, mtimeMs);
}
