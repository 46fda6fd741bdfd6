import { describe, expect, it, vi } from 'vitest';
import { HotCache } from '../../src/service/hot-cache.ts';

interface Row {
  readonly value: number;
}

function cache(now = { ms: 1_000 }) {
  return new HotCache<Row>({ rowsMax: 10, ageMsMax: 2_000, nowMs: () => now.ms });
}

describe('hot cache', () => {
  it('shares one load among callers that come together', async () => {
    const load = vi.fn<() => Promise<Row>>(async () => ({ value: 1 }));
    const rows = cache();
    const got = await Promise.all([rows.get('a', load), rows.get('a', load), rows.get('a', load)]);
    expect(got).toEqual([{ value: 1 }, { value: 1 }, { value: 1 }]);
    expect(load).toHaveBeenCalledTimes(1);
  });

  it('loads a row anew once it is two seconds old', async () => {
    const now = { ms: 1_000 };
    let value = 0;
    const load = async () => ({ value: (value += 1) });
    const rows = cache(now);
    await rows.get('a', load);
    now.ms += 1_900;
    expect(await rows.get('a', load)).toEqual({ value: 1 });
    now.ms += 200;
    expect(await rows.get('a', load)).toEqual({ value: 2 });
  });

  it('does not keep absent rows or failures', async () => {
    const rows = cache();
    expect(await rows.get('a', async () => undefined)).toBeUndefined();
    await expect(rows.get('a', () => Promise.reject(new Error('down')))).rejects.toThrow('down');
    expect(await rows.get('a', async () => ({ value: 1 }))).toEqual({ value: 1 });
  });

  it('does not keep a load that was under way when the row was forgotten', async () => {
    const rows = cache();
    const slow = Promise.withResolvers<Row>();
    const first = rows.get('a', () => slow.promise);
    rows.forget('a');
    slow.resolve({ value: 1 });
    expect(await first).toEqual({ value: 1 });
    expect(await rows.get('a', async () => ({ value: 2 }))).toEqual({ value: 2 });
  });

  it('gives back the memory of ten thousand rows once they are too old', async () => {
    const now = { ms: 1_000 };
    const rows = new HotCache<Row>({ rowsMax: 20_000, ageMsMax: 2_000, nowMs: () => now.ms });
    for (let row = 0; row < 10_000; row += 1) await rows.get(`row ${row}`, async () => ({ value: row }));
    expect(rows.size).toBe(10_000);
    now.ms += 2_001;
    await rows.get('another', async () => ({ value: 1 }));
    expect(rows.size).toBe(1);
  });
});
