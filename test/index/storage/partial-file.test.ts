/** Copies that are read while they are being fetched, from an object store of this test. */
import { createHash, randomBytes } from 'node:crypto';
import { readdir, readFile, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import type { BlobCache, CachedFile, PartialCopy } from '../../../src/index/storage/blob-cache.ts';
import { openBlobCache } from '../../../src/index/storage/local-blob-cache.ts';
import type { ObjectStore } from '../../../src/index/storage/object-store.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';

const partBytes = 256 * 1024;
/** The last part is not full. */
const parts = 80;
const content = randomBytes((parts - 1) * partBytes + 1_000);
const file: CachedFile = {
  name: 'i/a.seg',
  key: 'key',
  bytes: content.length,
  sha256: createHash('sha256').update(content).digest('hex'),
};
const away = (): Error => new ServiceError('service_unavailable', 'away', { retryAfterSeconds: 1 });

/** One object. */
class Objects implements Partial<ObjectStore> {
  /** Requests of this many bytes wait for it. */
  gate: (bytes: number) => Promise<void> = () => Promise.resolve();
  fault: () => Error | undefined = () => undefined;
  stored = content;
  running = 0;
  runningMost = 0;
  bytes = 0;

  async readPart(_key: string, first: number, bytes: number): Promise<Buffer> {
    this.running += 1;
    this.runningMost = Math.max(this.runningMost, this.running);
    try {
      await this.gate(bytes);
      await nextTurn();
      const fault = this.fault();
      if (fault !== undefined) throw fault;
      this.bytes += bytes;
      return Buffer.from(this.stored.subarray(first, first + bytes));
    } finally {
      this.running -= 1;
    }
  }

  async getFile(_key: string, at: string): Promise<void> {
    await writeFile(at, this.stored, { flag: 'wx' });
  }
}

interface Opened {
  readonly directory: string;
  readonly objects: Objects;
  readonly cache: BlobCache;
  readonly errors: unknown[];
}

async function open(directory?: string, bytesMax = 2 ** 30): Promise<Opened> {
  const at = directory ?? path.join(await newDirectory(), 'cache');
  const objects = new Objects();
  const errors: unknown[] = [];
  const cache = await openBlobCache({
    directory: at,
    objects: objects as unknown as ObjectStore,
    bytesMax,
    onError: (error) => void errors.push(error),
  });
  return { directory: at, objects, cache, errors };
}

async function partialOf(cache: BlobCache): Promise<PartialCopy> {
  const { partial } = await cache.open(file);
  if (partial === undefined) throw new Error('it is whole');
  return partial;
}

/** The numbers of the parts that are here. */
function present({ parts: bits }: PartialCopy): readonly number[] {
  return Array.from({ length: 8 * bits.length }, (_bit, part) => part).filter(
    (part) => (bits[part >> 3]! >> (part & 7)) & 1,
  );
}

const partOf = (whole: Buffer, part: number): Buffer =>
  whole.subarray(part * partBytes, (part + 1) * partBytes);
const range = (first: number, count: number): readonly number[] =>
  Array.from({ length: count }, (_part, place) => first + place);

async function expectPartsRight(partial: PartialCopy, wholePath: string): Promise<void> {
  const said = present(partial);
  const lying = await readFile(partial.path).catch(() => readFile(wholePath));
  expect(lying.length).toBe(file.bytes);
  for (const part of said)
    expect(partOf(lying, part).equals(partOf(content, part)), `part ${part}`).toBe(true);
}

const entries = async (cache: BlobCache): Promise<readonly string[]> =>
  readdir(path.dirname(await cache.create('i/any')));

it('has the parts that were asked for, whatever fails, and in the end all of them, fetched once', async () => {
  const command = fc.record({
    kind: fc.constantFrom('need', 'need', 'need', 'ends', 'complete'),
    first: fc.nat(parts - 1),
    count: fc.integer({ min: 1, max: 30 }),
    failing: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(command, { maxLength: 4 }), { maxLength: 5 }), async (rounds) => {
      const { cache, objects } = await open();
      const partial = await partialOf(cache);
      for (const commands of rounds) {
        await Promise.all(
          commands.map(async ({ kind, first, count, failing }) => {
            const wanted = range(first, Math.min(count, parts - first));
            let failures = failing ? 1 : 0;
            objects.fault = () => (failures-- > 0 ? away() : undefined);
            const had = new Set(present(partial));
            if (kind === 'complete') return void partial.complete();
            const asked = kind === 'ends' ? partial.needEnds(3) : partial.need(wanted);
            const error = await asked.catch((failure: unknown) => failure);
            if (error !== undefined) return expect(error).toMatchObject({ message: 'away' });
            const has = new Set(present(partial));
            const missing = wanted.filter((part) => !has.has(part) && kind === 'need');
            expect([missing, [...had].filter((part) => !has.has(part))]).toEqual([[], []]);
          }),
        );
        await expectPartsRight(partial, await cache.create(file.name));
      }
      objects.fault = () => undefined;
      expect((await readFile(await cache.fetch(file))).equals(content)).toBe(true);
      expect(objects.bytes).toBe(content.length);
      expect((await cache.open(file)).partial).toBeUndefined();
      expect(await entries(cache)).toEqual(['a.seg']);
    }),
    { numRuns: 12 },
  );
});

it('makes few requests at a time, however much is wanted', async () => {
  const { cache, objects } = await open();
  const partial = await partialOf(cache);
  const even = range(0, parts).filter((part) => part % 2 === 0);
  await partial.need(even);
  expect(objects.runningMost).toBe(32);
  objects.runningMost = 0;
  await partial.complete();
  expect(objects.runningMost).toBe(8);
});

it('requests parts that two callers want once, and parts that a search wants before the rest', async () => {
  const { cache, objects } = await open();
  const partial = await partialOf(cache);
  const gate = Promise.withResolvers<void>();
  objects.gate = (bytes) => (bytes > 6 * partBytes ? gate.promise : Promise.resolve());
  const completing = partial.complete();
  await Promise.all([partial.need(range(74, 6)), partial.need(range(77, 3))]);
  expect(present(partial)).toEqual(range(74, 6));
  gate.resolve();
  await completing;
  expect(objects.bytes).toBe(content.length);
});

it('is removed when its bytes differ from the object', async () => {
  const { cache, objects, errors } = await open();
  objects.stored = Buffer.from(content);
  objects.stored[123_456]! ^= 1;
  const partial = await partialOf(cache);
  await expect(partial.complete()).rejects.toMatchObject({ code: 'corrupt' });
  expect(await entries(cache)).toEqual([]);
  objects.stored = objects.stored.subarray(0, -1);
  const shorter = await partialOf(cache);
  await expect(shorter.need([parts - 1])).rejects.toMatchObject({ code: 'corrupt' });
  await expect(shorter.complete()).rejects.toMatchObject({ code: 'corrupt' });
  objects.fault = () => Object.assign(new Error('gone'), { code: 'ENOENT' });
  await expect((await partialOf(cache)).complete()).rejects.toMatchObject({ code: 'ENOENT' });
  expect(await entries(cache)).toEqual([]);
  objects.fault = () => undefined;
  objects.stored = content;
  await (await partialOf(cache)).complete();
  expect(errors).toEqual([]);
});

it('belongs to one process: two that open it at once have it whole, and one file is left', async () => {
  const one = await open();
  const two = await open(one.directory);
  const both = [await partialOf(one.cache), await partialOf(two.cache)];
  expect(both[0]!.path).not.toBe(both[1]!.path);
  await both[0]!.need([3]);
  expect(present(both[1]!)).toEqual([]);
  await Promise.all(both.map((partial) => partial.complete()));
  expect(await entries(one.cache)).toEqual(['a.seg']);
  expect((await readFile(await two.cache.fetch(file))).equals(content)).toBe(true);
});

it('that is removed never becomes whole, and is fetched again', async () => {
  const { cache, objects } = await open();
  for (const remove of [() => cache.remove(file.name), () => cache.removeIndex('i')]) {
    const partial = await partialOf(cache);
    await partial.need([1, 2]);
    const gate = Promise.withResolvers<void>();
    objects.gate = () => gate.promise;
    const completing = partial.complete();
    await remove();
    gate.resolve();
    await expect(completing).rejects.toMatchObject({ code: 'service_unavailable' });
    expect(await entries(cache)).toEqual([]);
    expect(present(await partialOf(cache))).toEqual([]);
    await cache.remove(file.name);
  }
});

it('counts with all of its bytes, and is not evicted', async () => {
  const { cache, errors } = await open(undefined, 1_000);
  const partial = await partialOf(cache);
  expect(cache.statistics).toMatchObject({ bytes: content.length, files: 1, misses: 1, hits: 0 });
  const old = Date.now() / 1000 - 600;
  await utimes(partial.path, old, old);
  await writeFile(await cache.create('j/own'), Buffer.alloc(2_000));
  await cache.adopt('j/own');
  await partial.need([0]);
  expect(await entries(cache)).toEqual([path.basename(partial.path)]);
  await partial.complete();
  expect(errors).toEqual([]);
});
