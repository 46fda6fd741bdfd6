/** Who is blamed when encoders end, and in which turn suspects run. */
import { describe, expect, it } from 'vitest';
import { CrashSuspects, SuspectQuery, Turns } from '../../src/encoder/crash-suspects.ts';

const lost = (replaced: { yet: boolean }) => ({ address: 'a', isReplaced: () => replaced.yet });

describe('documents of a call', () => {
  it('go together until two processes are known to have ended', () => {
    const suspects = new CrashSuspects();
    const first = { yet: true };
    const second = { yet: false };
    suspects.lostTogether(lost(first));
    suspects.lostTogether(lost(second));
    expect(suspects.alone).toBe(false);
    second.yet = true;
    expect(suspects.alone).toBe(true);
  });

  it('go together however often an encoder was lost that is still the same', () => {
    const suspects = new CrashSuspects();
    for (let i = 0; i < 9; i++) suspects.lostTogether(lost({ yet: false }));
    expect(suspects.alone).toBe(false);
  });

  it('are blamed when two processes ended under one alone, not when one did', () => {
    const suspects = new CrashSuspects();
    expect(suspects.endedAlone(0)).toBe(false);
    // The first came through at its second try: what it was counted for is forgotten.
    expect(suspects.endedAlone(1)).toBe(false);
    expect(suspects.endedAlone(1)).toBe(true);
    expect(suspects.endedAlone(2)).toBe(false);
    expect(suspects.endedAlone(2)).toBe(true);
  });
});

describe('a query', () => {
  it('is blamed when two processes ended under it alone, never for those that ended under others too', () => {
    const suspect = new SuspectQuery();
    for (let i = 0; i < 9; i++) suspect.lost(lost({ yet: true }), false);
    expect(suspect).toMatchObject({ alone: true, accusations: [], guilty: false });
    const second = { yet: false };
    suspect.lost(lost({ yet: true }), true);
    expect(suspect).toMatchObject({ accusations: [], guilty: false });
    suspect.lost(lost(second), true);
    expect(suspect.accusations).toHaveLength(2);
    expect(suspect.guilty).toBe(false);
    second.yet = true;
    expect(suspect.guilty).toBe(true);
  });

  it('goes with others until two processes ended, and alone once one ended under it alone', () => {
    const suspect = new SuspectQuery();
    suspect.lost(lost({ yet: true }), false);
    suspect.lost(lost({ yet: false }), false);
    expect(suspect.alone).toBe(false);
    suspect.lost(lost({ yet: true }), false);
    expect(suspect.alone).toBe(true);
    const single = new SuspectQuery();
    single.lost(lost({ yet: false }), true);
    expect(single.alone).toBe(true);
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
