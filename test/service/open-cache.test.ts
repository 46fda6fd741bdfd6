import { describe, expect, it } from 'vitest';
import type { OpenIndex } from '../../src/index/contract.ts';
import { OpenCache } from '../../src/service/open-cache.ts';

/** An open index of which only opening and closing matter. */
class Opened {
  usable = true;
  busy = false;
  closed = false;
  readonly background = Promise.withResolvers<void>();

  constructor(settled = true) {
    if (settled) this.background.resolve();
  }

  close(): void {
    this.closed = true;
  }

  settled(): Promise<void> {
    return this.background.promise;
  }
}

function fixture(openMax: number) {
  const indexes = new OpenCache({ openMax });
  const opened: Opened[] = [];
  const open = async (): Promise<OpenIndex> => {
    const index = new Opened();
    opened.push(index);
    return index as unknown as OpenIndex;
  };
  return { indexes, opened, open };
}

describe('open indexes', () => {
  it('opens an index once for callers that come together', async () => {
    const { indexes, opened, open } = fixture(10);
    await Promise.all([1, 2, 3].map(() => indexes.use('a', open, async () => undefined)));
    expect(opened).toHaveLength(1);
  });

  it('closes the index idle for longest when too many are open, never one in use', async () => {
    const { indexes, open } = fixture(2);
    const hold = Promise.withResolvers<void>();
    const using = indexes.use('a', open, () => hold.promise);
    for (const id of ['b', 'c', 'd']) await indexes.use(id, open, async () => undefined);
    expect(indexes.openKeys()).toEqual(['a', 'd']);
    hold.resolve();
    await using;
    await indexes.use('e', open, async () => undefined);
    expect(indexes.openKeys()).toEqual(['a', 'e']);
  });

  it('waits for the users of an index before it closes it, and lets nobody open it meanwhile', async () => {
    const { indexes, opened, open } = fixture(10);
    const hold = Promise.withResolvers<void>();
    const using = indexes.use('a', open, () => hold.promise);
    await Promise.resolve();
    const closing = indexes.close('a');
    const again = indexes.use('a', open, async () => 'again');
    await Promise.resolve();
    expect(opened.map(({ closed }) => closed)).toEqual([false]);
    hold.resolve();
    await Promise.all([using, closing]);
    expect(await again).toBe('again');
    expect(opened.map(({ closed }) => closed)).toEqual([true, false]);
  });

  it('opens anew after an index became unusable', async () => {
    const { indexes, opened, open } = fixture(10);
    await indexes.use('a', open, async (index) => {
      (index as unknown as Opened).usable = false;
    });
    await indexes.use('a', open, async () => undefined);
    expect(opened.map(({ closed }) => closed)).toEqual([true, false]);
  });

  it('opens an index again only when the background work of the closed one has ended', async () => {
    const { indexes, opened, open } = fixture(10);
    const first = new Opened(false);
    await indexes.use(
      'a',
      async () => first as unknown as OpenIndex,
      async () => undefined,
    );
    const closing = indexes.close('a');
    const again = indexes.use('a', open, async () => 'again');
    await new Promise(setImmediate);
    expect([first.closed, opened.length]).toEqual([true, 0]);
    expect(indexes.openKeys()).toEqual([]);
    first.background.resolve();
    await closing;
    expect(await again).toBe('again');
    expect(opened).toHaveLength(1);
  });

  it('forgets an open that failed', async () => {
    const { indexes, open } = fixture(10);
    const failing = () => Promise.reject(new Error('damaged'));
    const attempts = [1, 2].map(() => indexes.use('a', failing, async () => undefined));
    for (const attempt of attempts) await expect(attempt).rejects.toThrow('damaged');
    expect(await indexes.use('a', open, async () => 'open')).toBe('open');
  });

  it('leaves an index that is not open alone', async () => {
    const { indexes } = fixture(10);
    expect(await indexes.useIfOpen('a', async () => 'used')).toBeUndefined();
    await indexes.close('a');
  });
});
