/** Who is blamed when encoders end, and in which turn suspects run. */
import { describe, expect, it } from 'vitest';
import { CrashSuspects, Turns } from '../../src/encoder/crash-suspects.ts';

describe('documents of a call', () => {
  it('go together until two processes ended, then one by one', () => {
    const suspects = new CrashSuspects();
    expect(suspects.next([0, 1, 2])).toEqual([0, 1, 2]);
    expect(suspects.count([0, 1, 2])).toBeUndefined();
    expect(suspects.next([1, 2])).toEqual([1, 2]);
    expect(suspects.count([1, 2])).toBeUndefined();
    expect(suspects.alone).toBe(true);
    expect(suspects.next([1, 2])).toEqual([1]);
  });

  it('are blamed when two processes ended under one alone, not when one did', () => {
    const suspects = new CrashSuspects();
    for (let i = 0; i < 2; i++) suspects.count([0, 1, 2]);
    expect(suspects.count([0])).toBeUndefined();
    // The first came through at its second try: what it was counted for is forgotten.
    expect(suspects.count([1])).toBeUndefined();
    expect(suspects.count([1])).toBe(1);
    expect(suspects.count([2])).toBeUndefined();
    expect(suspects.count([2])).toBe(2);
  });
});

describe('turns', () => {
  it('are taken one after another, and one that leaves the line lets the next one in', async () => {
    const turns = new Turns();
    const { signal } = new AbortController();
    const order: string[] = [];
    const endFirst = await turns.take(signal);
    const leaving = new AbortController();
    const second = turns.take(leaving.signal);
    const third = turns.take(signal).then((end) => {
      order.push('third');
      return end;
    });
    const fourth = turns.take(signal).then(() => order.push('fourth'));
    leaving.abort(new Error('gone'));
    await expect(second).rejects.toThrow('gone');
    expect(order).toEqual([]);
    endFirst();
    (await third)();
    await fourth;
    expect(order).toEqual(['third', 'fourth']);
  });
});
