import { describe, expect, it } from 'vitest';
import type { OpenIndex } from '../../src/index/contract.ts';
import { OpenCache, type Opening } from '../../src/service/open-cache.ts';

/** An open index of which only opening and closing matter. */
class Opened {
  usable = true;
  busy = false;
  closed = false;
  /** Called when it is closed. */
  onClose = (): void => undefined;
  readonly background = Promise.withResolvers<void>();

  constructor(settled = true) {
    if (settled) this.background.resolve();
  }

  close(): void {
    this.closed = true;
    this.onClose();
  }

  settled(): Promise<void> {
    return this.background.promise;
  }
}

/** Each open index takes one byte, or `bytes`, of a memory of `mostBytes`. The key of an index begins with its tenant. */
function fixture(openMax: number, mostBytes = Infinity) {
  const taken = new Map<string, number>();
  const clock = { nowMs: 0 };
  const memory = {
    memory: () => ({ mostBytes, takenBytes: [...taken.values()].reduce((sum, bytes) => sum + bytes, 0) }),
    memoryOwners: () => [...taken].map(([owner, takenBytes]) => ({ owner, takenBytes })),
  };
  const indexes = new OpenCache<OpenIndex>({ openMax, memory, nowMs: () => clock.nowMs });
  const opened: Opened[] = [];
  const openingOf = (owner: string, bytes = 1): Opening<OpenIndex> => ({
    owner,
    open: async () => {
      const index = new Opened();
      opened.push(index);
      taken.set(owner, (taken.get(owner) ?? 0) + bytes);
      index.onClose = () => {
        const left = (taken.get(owner) ?? 0) - bytes;
        if (left > 0) taken.set(owner, left);
        else taken.delete(owner);
      };
      return index as unknown as OpenIndex;
    },
  });
  const touch = (key: string, bytes = 1): Promise<void> =>
    indexes.use(key, openingOf(key.charAt(0), bytes), async () => undefined);
  return { indexes, opened, open: openingOf('tenant'), touch, clock };
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
      { owner: 'tenant', open: async () => first as unknown as OpenIndex },
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
    const failing = { owner: 'tenant', open: () => Promise.reject(new Error('damaged')) };
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

describe('open indexes of several tenants', () => {
  it('closes those of the tenant that has most open when too many are open', async () => {
    const { indexes, touch } = fixture(4);
    for (const key of ['a1', 'b1', 'b2', 'c1', 'b3', 'b4', 'b5']) await touch(key);
    expect(indexes.openKeys()).toEqual(['a1', 'c1', 'b4', 'b5']);
  });

  it('makes room for a tenant that is alone from its own idle indexes, the longest idle first', async () => {
    const { indexes, touch } = fixture(10, 3);
    for (const key of ['a1', 'a2', 'a3']) await touch(key);
    await indexes.use('a1', { owner: 'a', open: () => Promise.reject(new Error('open')) }, async () => {
      expect(await indexes.makeRoom('a')).toBe(true);
      expect(indexes.openKeys()).toEqual(['a1', 'a3']);
      expect(await indexes.makeRoom('a')).toBe(true);
      expect(await indexes.makeRoom('a')).toBe(false);
    });
    expect(indexes.openKeys()).toEqual(['a1']);
  });

  it('makes room from the tenant that has most, never from one that has less than the asker or its share', async () => {
    const { indexes, touch } = fixture(10, 12);
    await touch('a1', 5);
    await touch('b1', 6);
    await touch('c1', 1);
    await indexes.use('a1', { owner: 'a', open: () => Promise.reject(new Error('open')) }, async () => {
      // A share is 4.
      expect(await indexes.makeRoom('a')).toBe(true);
      expect(indexes.openKeys()).toEqual(['a1', 'c1']);
      // The other one left has less than its share.
      expect(await indexes.makeRoom('a')).toBe(false);
    });
  });

  it('makes room from anybody who was idle for five minutes, whatever looks at open indexes meanwhile', async () => {
    const { indexes, touch, clock } = fixture(10, 12);
    await touch('a1', 2);
    await touch('b1', 10);
    await indexes.use('b1', { owner: 'b', open: () => Promise.reject(new Error('open')) }, async () => {
      clock.nowMs = 299_999;
      await indexes.useIfOpen('a1', async () => undefined);
      expect(await indexes.makeRoom('b')).toBe(false);
      clock.nowMs = 300_000;
      expect(await indexes.makeRoom('b')).toBe(true);
    });
    expect(indexes.openKeys()).toEqual(['b1']);
  });

  it('closes idle indexes of a tenant above its share once another has passed the bound', async () => {
    const { indexes, touch } = fixture(10, 10);
    for (const key of ['b1', 'b2', 'b3']) await touch(key, 3);
    await touch('a1', 4);
    await new Promise(setImmediate);
    expect(indexes.openKeys()).toEqual(['b2', 'b3', 'a1']);
  });
});
