/** Loading the values of metadata: who waits, what is read at a time, and when it ends. */
import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { askAgain, noRepeats } from '../../../src/index/ask-again.ts';
import type { ColumnFiles } from '../../../src/index/engine/native.ts';
import { ValueLoader, type VersionMetadata } from '../../../src/index/segments/value-loader.ts';

const needed = { where: Uint8Array.of(1) };
const segmentId = 1;

/** An engine that lacks the values of some records, and a catalog whose answers can be held. */
class Values {
  readonly known = new Set<number>();
  readonly reads: (readonly number[])[] = [];
  readonly files = new Set<string>();
  readonly errors: unknown[] = [];
  readonly loader: ValueLoader;
  /** Writes files of columns. */
  write = async (): Promise<ColumnFiles> => ({ written: ['.columns-1'], surplus: [] });
  segments = (): readonly object[] => [{ segmentId, centroids: 1 }];
  #read: PromiseWithResolvers<void> | undefined;

  constructor(records: number, metadata = '{}') {
    const lacking = (): number[] =>
      Array.from({ length: records }, (_, record) => record).filter((record) => !this.known.has(record));
    this.loader = new ValueLoader({
      native: {
        segments: () => this.segments() as never,
        recordsWithoutValues: async () => ({
          records: Uint32Array.from(lacking()),
          versionIds: Float64Array.from(lacking()),
        }),
        addValues: async (_segment, _needed, added) => added.forEach((record) => this.known.add(record)),
        saveValues: async () => await this.write(),
        copyValues: async () => await this.write(),
      },
      catalog: {
        readMetadata: async (versionIds): Promise<VersionMetadata> => {
          this.reads.push(versionIds);
          await this.#read?.promise;
          return new Map(versionIds.map((versionId) => [versionId, { metadata }]));
        },
      },
      columns: {
        list: async () => [],
        remove: async (name) => void this.files.delete(name),
        adopt: async (name) => void this.files.add(name),
      },
      blobOf: () => 'i/1.seg',
      onError: (error) => this.errors.push(error),
    });
    this.#complete = () => this.known.size === records;
  }

  readonly #complete: () => boolean;

  /** Holds reads until the returned function is called. */
  hold(): () => void {
    this.#read = Promise.withResolvers();
    return this.#read.resolve;
  }

  ask(more: { readonly endsAt?: number; readonly signal?: AbortSignal } = {}): Promise<string> {
    const condition = {
      needed,
      generation: 1,
      endsAt: performance.now() + 10_000,
      signal: new AbortController().signal,
      ...more,
    };
    const mend = async () => {
      await this.loader.load(condition);
      return 'values' as const;
    };
    return askAgain(noRepeats(), mend, async () => {
      if (this.#complete()) return 'found';
      throw new Error('values are missing');
    });
  }
}

describe('values of metadata', () => {
  it('are read once for all that wait, about a megabyte at a time', async () => {
    const values = new Values(1_000, JSON.stringify('x'.repeat(15_000)));
    const answers = await Promise.all(Array.from({ length: 20 }, () => values.ask()));
    expect(new Set(answers)).toEqual(new Set(['found']));
    expect(values.reads.flat()).toEqual(Array.from({ length: 1_000 }, (_, record) => record));
    for (const read of values.reads) expect(read.length * 15_000).toBeLessThanOrEqual(1 << 20);
  });

  it('are read in large parts where they are small', async () => {
    const values = new Values(10_000);
    await values.ask();
    expect(values.reads.length).toBeLessThan(12);
  });

  it('are read no further when the last one has left, and stay as far as they were read', async () => {
    const values = new Values(1_000, JSON.stringify('x'.repeat(15_000)));
    const release = values.hold();
    const leaving = [new AbortController(), new AbortController()];
    const left = leaving.map(({ signal }) => values.ask({ signal }));
    await expect.poll(() => values.reads.length).toBe(1);
    for (const controller of leaving) controller.abort(new Error('gone'));
    for (const ask of left) await expect(ask).rejects.toThrow('gone');
    release();
    await expect.poll(() => values.known.size).toBe(64);
    // The load goes on from there when somebody asks again.
    expect(values.reads).toHaveLength(1);
    expect(await values.ask()).toBe('found');
    expect(values.reads.flat()).toHaveLength(1_000);
  });

  it('that take past the deadline are 503, and one that waits on has its answer', async () => {
    const values = new Values(100);
    const release = values.hold();
    const patient = values.ask();
    await expect(values.ask({ endsAt: performance.now() + 10 })).rejects.toMatchObject({
      code: 'service_unavailable',
      retryAfterSeconds: 1,
    });
    release();
    expect(await patient).toBe('found');
  });

  it('are saved as files, for which nobody waits', async () => {
    const values = new Values(100);
    const written = Promise.withResolvers<ColumnFiles>();
    values.write = () => written.promise;
    values.files.add('i/1.seg.columns-0');
    expect(await values.ask()).toBe('found');
    written.resolve({ written: ['.columns-1'], surplus: ['.columns-0'] });
    await values.loader.settled();
    expect(values.files).toEqual(new Set(['i/1.seg.columns-1']));
  });

  it('stay in memory when a file cannot be written, which is reported', async () => {
    const values = new Values(100);
    values.write = async () => {
      throw new Error('no space');
    };
    expect(await values.ask()).toBe('found');
    await values.loader.settled();
    expect(values.errors).toEqual([new Error('no space')]);
  });

  it('are neither copied nor saved when the engine was closed, which rejects nothing', async () => {
    const values = new Values(100);
    const read = values.hold();
    const answer = values.ask();
    await expect.poll(() => values.reads.length).toBe(1);
    const closed = new Error('the engine is closed');
    values.segments = () => {
      throw closed;
    };
    read();
    expect(await answer).toBe('found');
    await values.loader.copy({ id: segmentId, blob: 'i/1.seg' });
    await values.loader.settled();
    expect(values.errors).toEqual([closed, closed]);
  });

  it('are read from the catalog only when a copy that is being made has ended', async () => {
    const values = new Values(100);
    const written = Promise.withResolvers<ColumnFiles>();
    values.write = () => written.promise;
    const copied = values.loader.copy({ id: segmentId, blob: 'i/1.seg' });
    const answer = values.ask();
    await setImmediate();
    expect(values.reads).toEqual([]);
    for (let record = 0; record < 100; ++record) values.known.add(record);
    written.resolve({ written: [], surplus: [] });
    await copied;
    expect(await answer).toBe('found');
    expect(values.reads.flat()).toEqual([]);
  });
});
