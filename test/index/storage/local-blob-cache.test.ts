/** Copies of objects on the disk of a node, with an object store of the test's own that fails when asked to. */
import { createHash, randomUUID } from 'node:crypto';
import { readdir, readFile, rename, stat, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import type { BlobCache, CachedFile } from '../../../src/index/storage/blob-cache.ts';
import { openBlobCache } from '../../../src/index/storage/local-blob-cache.ts';
import type { ObjectStore } from '../../../src/index/storage/object-store.ts';
import { hasCode } from '../../../src/system-errors.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';

type Fault = 'missing' | 'away' | 'no space' | 'half, then away';

const faultOf: Readonly<Record<Fault, () => Error>> = {
  missing: () => Object.assign(new Error('missing'), { code: 'ENOENT' }),
  away: () => new ServiceError('service_unavailable', 'away', { retryAfterSeconds: 1 }),
  'no space': () => Object.assign(new Error('full'), { code: 'no_space' }),
  'half, then away': () => new ServiceError('service_unavailable', 'away', { retryAfterSeconds: 1 }),
};

/** Objects by key. Downloads wait for `gate`. */
class Objects implements ObjectStore {
  readonly contents = new Map<string, Buffer>();
  fault: Fault | undefined;
  gets = 0;
  gate: Promise<void> = Promise.resolve();

  async putFile(): Promise<never> {
    throw new Error('a cache puts nothing');
  }

  async getFile(key: string, file: string): Promise<void> {
    this.gets += 1;
    const content = this.contents.get(key)!;
    const { fault } = this;
    if (fault !== undefined && fault !== 'half, then away') throw faultOf[fault]();
    await writeFile(file, content.subarray(0, content.length / 2), { flag: 'wx' });
    await this.gate;
    // A process that ends in a download leaves a part of the file.
    if (fault !== undefined) throw faultOf[fault]();
    await writeFile(file, content);
  }

  async readPart(): Promise<never> {
    throw new Error('a cache reads whole objects');
  }

  async remove(): Promise<void> {}
  async ping(): Promise<void> {}
  close(): void {}

  /** Makes an object of this many bytes. Returns what the catalog says about it. */
  add(name: string, bytes: number): CachedFile {
    const content = Buffer.alloc(bytes, name);
    this.contents.set(`key of ${name}`, content);
    const sha256 = createHash('sha256').update(content).digest('hex');
    return { name, key: `key of ${name}`, bytes, sha256 };
  }
}

interface Stage {
  readonly directory: string;
  readonly objects: Objects;
  readonly cache: BlobCache;
  readonly errors: unknown[];
}

async function open(bytesMax: number, earlier?: Pick<Stage, 'directory' | 'objects'>): Promise<Stage> {
  const directory = earlier?.directory ?? path.join(await newDirectory(), 'cache');
  const objects = earlier?.objects ?? new Objects();
  const errors: unknown[] = [];
  const onError = (error: unknown) => void errors.push(error);
  return {
    directory,
    objects,
    errors,
    cache: await openBlobCache({ directory, objects, bytesMax, onError }),
  };
}

async function exists(file: string): Promise<boolean> {
  return stat(file).then(
    () => true,
    () => false,
  );
}

/** The file was evicted before it was opened. */
function isEvicted(error: unknown): boolean {
  return hasCode(error, 'ENOENT') && (error as NodeJS.ErrnoException).syscall === 'open';
}

/** The files of all indexes, by name, with their bytes. */
async function lying(cache: BlobCache): Promise<ReadonlyMap<string, number>> {
  const found = new Map<string, number>();
  for (const indexId of await cache.indexIds()) {
    const folder = path.dirname(await cache.create(`${indexId}/any`));
    for (const name of await readdir(folder)) {
      const file = await stat(path.join(folder, name)).catch(() => undefined);
      if (file !== undefined) found.set(`${indexId}/${name}`, file.size);
    }
  }
  return found;
}

const sum = (values: Iterable<number>): number => [...values].reduce((total, value) => total + value, 0);

describe('a copy', () => {
  it('is compared with its checksum where another epoch of the catalog uses it', async () => {
    const stage = await open(1_000_000);
    const { objects, errors } = stage;
    const names = ['index/whole.seg', 'index/damaged.seg'];
    const [whole, damaged] = names.map((name) => objects.add(name, 1_000)) as [CachedFile, CachedFile];
    await stage.cache.followEpoch('first');
    for (const file of [whole, damaged]) await stage.cache.fetch(file);
    const damage = async (): Promise<void> => {
      const file = await stage.cache.fetch(damaged);
      const { mtimeMs } = await stat(file);
      await writeFile(file, 'another history');
      // File times have whole milliseconds, and this one must not lie before the epoch.
      const changedAt = new Date(Math.ceil(mtimeMs) + 1);
      await utimes(file, changedAt, changedAt);
    };
    await damage();
    // The process starts again in the same epoch: copies are used as they are.
    const second = await open(1_000_000, stage);
    await second.cache.followEpoch('first');
    expect(await readFile(await second.cache.fetch(damaged), 'utf8')).toBe('another history');

    await second.cache.followEpoch('second');
    for (const file of [whole, damaged]) {
      expect(await readFile(await second.cache.fetch(file))).toEqual(objects.contents.get(file.key));
    }
    expect(objects.gets).toBe(3);
    expect(second.errors).toHaveLength(1);
    expect(errors).toEqual([]);
    await damage();
    // A copy that was compared or fetched in an epoch is not compared again in it.
    expect(await readFile(await second.cache.fetch(damaged), 'utf8')).toBe('another history');
  });

  it('is fetched once for all callers', async () => {
    const { cache, objects } = await open(1000);
    const file = objects.add('i/a.seg', 100);
    const paths = await Promise.all([cache.fetch(file), cache.fetch(file), cache.fetch(file)]);
    expect(new Set(paths).size).toBe(1);
    expect(await readFile(paths[0])).toEqual(objects.contents.get(file.key));
    expect(await cache.fetch(file)).toBe(paths[0]);
    expect(objects.gets).toBe(1);
    expect(cache.statistics).toMatchObject({ bytes: 100, files: 1, hits: 1, misses: 1 });
  });

  it.each(Object.keys(faultOf) as Fault[])(
    'that fails (%s) fails alone, and leaves no file',
    async (fault) => {
      const { cache, objects } = await open(1000);
      const [one, other] = [objects.add('i/a', 10), objects.add('j/a', 10)];
      await cache.fetch(other);
      objects.fault = fault;
      const { code } = faultOf[fault]() as Error & { readonly code: string };
      await expect(cache.fetch(one)).rejects.toMatchObject({ code });
      await cache.fetch(other);
      expect(await lying(cache)).toEqual(new Map([['j/a', 10]]));
      objects.fault = undefined;
      expect(await readFile(await cache.fetch(one))).toHaveLength(10);
    },
  );

  it('is used by every process of the host, and is fetched again after one has removed it', async () => {
    const one = await open(1000);
    const two = await open(1000, one);
    const file = one.objects.add('i/a', 10);
    expect(await one.cache.fetch(file)).toBe(await two.cache.fetch(file));
    expect(one.objects.gets).toBe(1);
    await two.cache.remove('i/a');
    await two.cache.remove('i/a');
    expect(await readFile(await one.cache.fetch(file))).toHaveLength(10);
    await one.cache.removeIndex('i');
    expect(await two.cache.indexIds()).toEqual([]);
    await Promise.all([one.cache.fetch(file), two.cache.fetch(file)]);
    expect(await lying(one.cache)).toEqual(new Map([['i/a', 10]]));
  });

  it('outlives the process but not a restart of the machine, however many processes start at once', async () => {
    const one = await open(1000);
    const file = one.objects.add('i/a', 10);
    await one.cache.fetch(file);
    const again = await open(1000, one);
    expect(again.cache.statistics).toMatchObject({ bytes: 10, files: 1 });
    // Another start of the machine would have left this folder.
    const [boot = ''] = await readdir(one.directory);
    await rename(path.join(one.directory, boot), path.join(one.directory, randomUUID()));
    const starting = Array.from({ length: 4 }, async () => {
      const stage = await open(1000, one);
      return readFile(await stage.cache.fetch(file));
    });
    for (const content of await Promise.all(starting)) expect(content).toHaveLength(10);
    expect(await readdir(one.directory)).toEqual([boot]);
    expect(one.objects.gets).toBeGreaterThan(1);
  });

  it('never lies outside of the cache', async () => {
    const { cache, objects } = await open(1000);
    for (const name of ['../a', 'i/../../a', '/a', 'i/a/b', 'a', 'i/.part', '']) {
      await expect(cache.fetch({ ...objects.add('i/a', 1), name })).rejects.toThrow('this is a bug');
    }
  });
});

describe('beyond its bytes', () => {
  it('the files that were used longest ago go', async () => {
    const { cache, objects, errors } = await open(1000);
    const files = Array.from({ length: 10 }, (_value, place) => objects.add(`i/${place}`, 100));
    const hourAgo = Date.now() / 1000 - 3600;
    for (const [place, file] of files.entries()) {
      await utimes(await cache.fetch(file), hourAgo + place, hourAgo + place);
    }
    await cache.fetch(files[0]!);
    await writeFile(await cache.create('j/own'), Buffer.alloc(100));
    await cache.adopt('j/own');
    await expect.poll(() => cache.statistics.evictions).toBe(2);
    const left = await lying(cache);
    expect([...left.keys()].toSorted()).toEqual(
      ['i/0', 'i/3', 'i/4', 'i/5', 'i/6', 'i/7', 'i/8', 'i/9', 'j/own'].toSorted(),
    );
    expect(cache.statistics).toMatchObject({ bytes: 900, files: 9 });
    expect(errors).toEqual([]);
  });

  it('no file goes that is being written or downloaded', async () => {
    const { cache, objects, errors } = await open(250);
    const gate = Promise.withResolvers<void>();
    objects.gate = gate.promise;
    const slow = cache.fetch(objects.add('i/slow', 60));
    const own = await cache.create('i/own');
    await writeFile(own, Buffer.alloc(60));
    await expect.poll(async () => (await lying(cache)).size).toBe(2);
    objects.gate = Promise.resolve();
    const hourAgo = Date.now() / 1000 - 3600;
    for (const name of (await lying(cache)).keys()) {
      const file = path.join(path.dirname(own), path.basename(name));
      await utimes(file, hourAgo, hourAgo + 60);
    }
    for (let place = 0; place < 10; place += 1) {
      const file = await cache.fetch(objects.add(`i/${place}`, 60));
      await utimes(file, hourAgo + 120, hourAgo + 120);
    }
    await expect.poll(() => cache.statistics.evictions).toBeGreaterThan(2);
    gate.resolve();
    expect(await readFile(await slow)).toHaveLength(60);
    expect(await exists(own)).toBe(true);
    await cache.adopt('i/own');
    expect(errors).toEqual([]);
  });
});

describe('a column, which the catalog does not name,', () => {
  const column = 'i/a.seg.columns-0123456789abcdef';
  const cutShort = 'i/b.seg.columns-0123456789abcdef.tmp';
  const hourAgo = Date.now() / 1000 - 3600;

  /** A cache of a segment and a column, which was used some seconds later (or earlier), and what a killed process left of another. */
  async function withColumn(bytesMax: number, secondsLater: number): Promise<Stage> {
    const stage = await open(bytesMax);
    const { cache, objects } = stage;
    const segment = await cache.fetch(objects.add('i/a.seg', 100));
    const folder = path.dirname(segment);
    await writeFile(path.join(folder, path.basename(column)), Buffer.alloc(100));
    await writeFile(path.join(folder, path.basename(cutShort)), Buffer.alloc(100));
    await utimes(segment, hourAgo, hourAgo);
    for (const name of [column, cutShort]) {
      const at = hourAgo + secondsLater;
      await utimes(path.join(folder, path.basename(name)), at, at);
    }
    await cache.adopt(column);
    return stage;
  }

  it('is counted, kept at each start, and in another epoch', async () => {
    const stage = await withColumn(1_000, 0);
    expect(stage.cache.statistics).toMatchObject({ bytes: 200, files: 2 });
    for (const epoch of ['first', 'second']) {
      const again = await open(1_000, stage);
      expect(again.cache.statistics).toMatchObject({ bytes: 300, files: 3 });
      await again.cache.followEpoch(epoch);
      await again.cache.fetch(again.objects.add('i/a.seg', 100));
      expect(await again.cache.list('i/a.seg.')).toEqual([{ name: column }]);
      expect([...(await lying(again.cache)).keys()].toSorted()).toEqual(['i/a.seg', column, cutShort]);
      expect(again.errors).toEqual([]);
    }
  });

  it.each([
    ['before its segment when it was used longer ago, as what was cut short is', -60, 700, ['i/a.seg']],
    ['after its segment when it was used since', 60, 605, [column, cutShort]],
  ])('is evicted %s', async (_when, secondsLater, bytes, left) => {
    const { cache, errors } = await open(900, await withColumn(900, secondsLater));
    await writeFile(await cache.create('j/own'), Buffer.alloc(bytes));
    await cache.adopt('j/own');
    await expect.poll(() => cache.statistics.evictions).toBe(3 - left.length);
    expect([...(await lying(cache)).keys()].toSorted()).toEqual([...left, 'j/own'].toSorted());
    expect(errors).toEqual([]);
  });

  it('is listed by the beginning of its name, without what is being fetched', async () => {
    const { cache, objects } = await withColumn(1_000, 0);
    const gate = Promise.withResolvers<void>();
    objects.gate = gate.promise;
    const fetching = cache.fetch(objects.add('i/a.seg.codes', 10));
    await expect.poll(async () => (await lying(cache)).size).toBe(4);
    const names = async (prefix: string) => (await cache.list(prefix)).map(({ name }) => name).toSorted();
    expect(await names('i/')).toEqual(['i/a.seg', column, cutShort].toSorted());
    expect(await names('i/b')).toEqual([cutShort]);
    expect(await names('i/a.seg.codes')).toEqual([]);
    expect(await names('j/')).toEqual([]);
    gate.resolve();
    await fetching;
    expect(await names('i/a.seg.codes')).toEqual(['i/a.seg.codes']);
  });
});

describe('in any history', () => {
  it('fetched files are whole, failed fetches leave nothing, and the bytes are bounded', async () => {
    const names = ['i/a', 'i/b', 'i/c', 'j/a', 'j/b', 'k/a'];
    const command = fc.record({
      kind: fc.constantFrom(
        'fetch',
        'fetch',
        'fetch',
        'fetch',
        'remove',
        'drop index',
        'write',
        'open again',
      ),
      pick: fc.nat(names.length - 1),
      fault: fc.option(fc.constantFrom(...(Object.keys(faultOf) as Fault[])), { nil: undefined, freq: 3 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(command, { maxLength: 40 }), async (commands) => {
        const bytesMax = 250;
        let stage = await open(bytesMax);
        const { objects } = stage;
        const files = names.map((name, place) => objects.add(name, 40 + 20 * place));
        let written = 0;
        for (const { kind, pick, fault } of commands) {
          const file = files[pick]!;
          objects.fault = fault;
          const { cache } = stage;
          if (kind === 'fetch') {
            const gets = objects.gets;
            // A copy may be evicted before it is opened. The caller fetches it once more then.
            const read = async () => readFile(await cache.fetch(file));
            const content = await read()
              .catch((error: unknown) => (isEvicted(error) ? read() : Promise.reject(error)))
              .catch((error: unknown) => error);
            if (content instanceof Error) expect(objects.gets > gets && fault !== undefined).toBe(true);
            else expect(content).toEqual(objects.contents.get(file.key));
          } else if (kind === 'remove') await cache.remove(file.name);
          else if (kind === 'drop index') await cache.removeIndex(file.name.slice(0, 1));
          else if (kind === 'write') {
            written += 1;
            const name = `${file.name}-${written}`;
            await writeFile(await cache.create(name), Buffer.alloc(50));
            await cache.adopt(name);
          } else stage = await open(bytesMax, stage);
          expect(stage.errors).toEqual([]);
        }
        await expect
          .poll(async () => sum((await lying(stage.cache)).values()), { interval: 2 })
          .toBeLessThanOrEqual(bytesMax);
        expect([...(await lying(stage.cache)).keys()].filter((name) => name.includes('.part'))).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });
});
