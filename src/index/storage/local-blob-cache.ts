/**
 * Copies of objects as files of one directory. Nothing in it is synced, so that all of it goes when the machine has
 * started anew since; what processes of the host share is the directory alone: a file appears by a rename, whole, and goes by its
 * removal, which leaves those who have it mapped what they read.
 *
 * Beyond its bytes, the files that were used longest ago go. Use is the time of access of the file, which a fetch sets.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, stat, statfs, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { assertInvariant } from '../../errors.ts';
import { hasCode } from '../../system-errors.ts';
import type { BlobCache, CachedFile } from './blob-cache.ts';
import type { ObjectStore } from './object-store.ts';

export interface BlobCacheOptions {
  readonly directory: string;
  readonly objects: ObjectStore;
  readonly bytesMax: number;
  /** Eviction failed; it is tried again with the next file. */
  readonly onError: (error: unknown) => void;
}

const bootFile = '/proc/sys/kernel/random/boot_id';
/** `<index id>/<file>`: two plain components, so that no name leaves the root. */
const namePattern = /^[A-Za-z0-9][A-Za-z0-9_-]*\/[A-Za-z0-9][A-Za-z0-9._-]*$/;
/** Names of files that are not whole yet. */
const partial = '.part-';
/** So much of the bound goes at a time, so that not every file evicts. */
const evictedShare = 0.1;
/** A partial file that is not written any more. */
const partialAgeMs = 3_600_000;

/** Empties the directory when its files may not be whole. */
export async function openBlobCache(options: BlobCacheOptions): Promise<BlobCache> {
  const root = path.resolve(options.directory);
  const boot = await readFile(bootFile, 'utf8').catch(() => randomUUID());
  const marker = path.join(root, 'boot');
  if ((await readFile(marker, 'utf8').catch(() => '')) !== boot) {
    await rm(root, { recursive: true, force: true });
    await mkdir(root, { recursive: true, mode: 0o700 });
    await writeFile(marker, boot);
  }
  const cache = new LocalBlobCache(root, options);
  await cache.count();
  return cache;
}

class LocalBlobCache implements BlobCache {
  readonly #root: string;
  readonly #options: BlobCacheOptions;
  readonly #fetching = new Map<string, Promise<string>>();
  /** Other processes add and remove, too: counted anew by each eviction. */
  readonly statistics = { bytes: 0, files: 0, hits: 0, misses: 0, evictions: 0 };
  #isEvicting = false;

  constructor(root: string, options: BlobCacheOptions) {
    this.#root = root;
    this.#options = options;
  }

  fetch(file: CachedFile): Promise<string> {
    const running = this.#fetching.get(file.name);
    if (running !== undefined) return running;
    const fetching = this.#fetch(file).finally(() => this.#fetching.delete(file.name));
    this.#fetching.set(file.name, fetching);
    return fetching;
  }

  async create(name: string): Promise<string> {
    const file = this.#path(name);
    await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
    return file;
  }

  async adopt(name: string): Promise<void> {
    this.#added((await stat(this.#path(name))).size);
  }

  async remove(name: string): Promise<void> {
    await rm(this.#path(name), { force: true });
  }

  async indexIds(): Promise<readonly string[]> {
    const entries = await readdir(this.#root, { withFileTypes: true });
    return entries.flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
  }

  async removeIndex(indexId: string): Promise<void> {
    await rm(path.dirname(this.#path(`${indexId}/any`)), { recursive: true, force: true });
  }

  async freeBytes(): Promise<number> {
    const found = await statfs(this.#root);
    return found.bavail * found.bsize;
  }

  /** Counts what lies there, least recently used first; drops what nobody will complete. */
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
        else files.push({ file, bytes: found.size, usedMs: found.atimeMs });
      }
    }
    this.statistics.files = files.length;
    this.statistics.bytes = files.reduce((sum, { bytes }) => sum + bytes, 0);
    return files.toSorted((a, b) => a.usedMs - b.usedMs);
  }

  async #fetch({ name, key, bytes, sha256 }: CachedFile): Promise<string> {
    const file = await this.create(name);
    const now = new Date();
    try {
      await utimes(file, now, (await stat(file)).mtime);
      this.statistics.hits += 1;
      return file;
    } catch (error) {
      if (!hasCode(error, 'ENOENT')) throw error;
    }
    this.statistics.misses += 1;
    const part = `${file}${partial}${randomUUID()}`;
    await this.#options.objects.getFile(key, part, { bytes, sha256 });
    await rename(part, file);
    this.#added(bytes);
    return file;
  }

  #added(bytes: number): void {
    this.statistics.bytes += bytes;
    this.statistics.files += 1;
    if (this.statistics.bytes <= this.#options.bytesMax) return;
    if (this.#isEvicting) return;
    this.#isEvicting = true;
    this.#evict()
      .catch(this.#options.onError)
      .finally(() => {
        this.#isEvicting = false;
      });
  }

  async #evict(): Promise<void> {
    const { bytesMax } = this.#options;
    for (const { file, bytes } of await this.count()) {
      if (this.statistics.bytes <= bytesMax * (1 - evictedShare)) return;
      await rm(file, { force: true });
      this.statistics.bytes -= bytes;
      this.statistics.files -= 1;
      this.statistics.evictions += 1;
    }
  }

  #path(name: string): string {
    assertInvariant(namePattern.test(name), `file name ${JSON.stringify(name)}`);
    return path.join(this.#root, name);
  }
}
