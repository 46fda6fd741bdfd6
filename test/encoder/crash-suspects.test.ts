/** Who is blamed when encoders end, for how long, and in which turn suspects run. */
import { describe, expect, it } from 'vitest';
import {
  CrashSuspects,
  type CrashSuspectsOptions,
  type SuspectKind,
} from '../../src/encoder/crash-suspects.ts';
import { Quarantine, Turns } from '../../src/encoder/quarantine.ts';

/** A loss of which nothing is known yet, or what is given. */
function loss(replaced?: boolean): { readonly address: string; replaced: boolean | undefined } {
  return { address: 'a', replaced };
}

const owner = { tenantId: 'tenant', model: 'model', modelVersion: '1' };

function suspectsWith(options: Partial<CrashSuspectsOptions> = {}) {
  const keepMs = { suspect: 1000, guilty: 2000 };
  return new CrashSuspects({ keepMs, textsMax: 10, endsMax: 4, endsWindowMs: 5000, ...options });
}

describe('a text', () => {
  it('goes with others until two processes are known to have ended under them', () => {
    const suspect = suspectsWith().about('text', 'query', owner);
    const second = loss();
    suspect.lost(loss(true), false);
    suspect.lost(second, false);
    expect(suspect.goesAlone).toBe(false);
    second.replaced = true;
    expect(suspect.goesAlone).toBe(true);
  });

  it('goes with others though several calls with it were lost with one process', () => {
    const suspect = suspectsWith().about('text', 'query', owner);
    const one = loss(true);
    for (let i = 0; i < 9; i++) suspect.lost(one, false);
    expect(suspect.goesAlone).toBe(false);
  });

  it('goes with others however often an encoder was lost that is still the same', () => {
    const suspect = suspectsWith().about('text', 'query', owner);
    for (let i = 0; i < 9; i++) suspect.lost(loss(false), i % 2 === 0);
    expect(suspect).toMatchObject({ goesAlone: false, guilty: false, accusations: [] });
  });

  it('may still go with others until four processes have ended under them, or one under it alone', () => {
    const suspects = suspectsWith();
    const suspect = suspects.about('text', 'query', owner);
    for (let i = 0; i < 3; i++) suspect.lost(loss(true), false);
    expect(suspect).toMatchObject({ goesAlone: true, goesAloneOnly: false });
    suspect.lost(loss(true), false);
    expect(suspect.goesAloneOnly).toBe(true);
    const another = suspects.about('another', 'query', owner);
    another.lost(loss(true), true);
    expect(another.goesAloneOnly).toBe(true);
  });

  it('is guilty when two processes ended under it alone, never for those that ended under others too', () => {
    const suspect = suspectsWith().about('text', 'query', owner);
    for (let i = 0; i < 9; i++) suspect.lost(loss(true), false);
    expect(suspect).toMatchObject({ goesAlone: true, accusations: [], guilty: false });
    const second = loss();
    suspect.lost(loss(true), true);
    expect(suspect).toMatchObject({ accusations: [], guilty: false });
    suspect.lost(second, true);
    expect(suspect.accusations).toHaveLength(2);
    expect(suspect.conviction()).toBeUndefined();
    second.replaced = true;
    expect(suspect.guilty).toBe(true);
    expect(suspect.conviction()).toBe(second);
    expect(suspect.conviction()).toBeUndefined();
  });

  it('goes alone once an encoder was lost under it alone, until it is known to be the same', () => {
    const suspect = suspectsWith().about('text', 'query', owner);
    const only = loss();
    suspect.lost(only, true);
    expect(suspect.goesAlone).toBe(true);
    only.replaced = false;
    expect(suspect.goesAlone).toBe(false);
  });
});

describe('what is known of a text', () => {
  const end = (suspects: CrashSuspects, text = 'text'): void => {
    for (let i = 0; i < 2; i++) suspects.about(text, 'query', owner).lost(loss(true), true);
  };
  const isGuilty = (suspects: CrashSuspects, text = 'text'): boolean =>
    suspects.about(text, 'query', owner).guilty;

  it('is known to later calls with it, of the same tenant, model and kind only', () => {
    const suspects = suspectsWith();
    end(suspects);
    expect(isGuilty(suspects)).toBe(true);
    expect(isGuilty(suspects, 'text ')).toBe(false);
    for (const other of [{ tenantId: 'other' }, { model: 'other' }, { modelVersion: '2' }]) {
      expect(suspects.about('text', 'query', { ...owner, ...other }).guilty).toBe(false);
    }
    expect(suspects.about('text', { chunking: { maxTokens: 20 } }, owner).guilty).toBe(false);
  });

  it('is forgotten when the text comes through', () => {
    const suspects = suspectsWith();
    const suspect = suspects.about('text', 'query', owner);
    for (let i = 0; i < 2; i++) suspect.lost(loss(true), false);
    expect(suspects.about('text', 'query', owner).goesAlone).toBe(true);
    suspect.cleared();
    expect(suspects.about('text', 'query', owner).goesAlone).toBe(false);
  });

  it('is forgotten when its time is over', () => {
    let nowMs = 0;
    const suspects = suspectsWith({ nowMs: () => nowMs });
    end(suspects);
    const suspect = suspects.about('another', 'query', owner);
    suspect.lost(loss(true), true);
    nowMs = 999;
    expect(suspect.goesAlone).toBe(true);
    nowMs = 1000;
    expect(suspect.goesAlone).toBe(false);
    nowMs = 1999;
    expect(isGuilty(suspects)).toBe(true);
    nowMs = 2000;
    expect(isGuilty(suspects)).toBe(false);
  });

  it('makes room for what is known of others, the one suspected longest ago first', () => {
    const suspects = suspectsWith();
    end(suspects, 'first');
    end(suspects, 'second');
    suspects.about('first', 'query', owner).lost(loss(true), true);
    for (let i = 0; i < 9; i++) end(suspects, `${i}`);
    expect(isGuilty(suspects, 'second')).toBe(false);
    expect(isGuilty(suspects, 'first')).toBe(true);
    expect(isGuilty(suspects, '8')).toBe(true);
  });
});

describe('a tenant', () => {
  it('has to wait once too many processes ended under its texts alone, until they are long ago', () => {
    let nowMs = 0;
    const suspects = suspectsWith({ nowMs: () => nowMs });
    const end = (tenantId: string, { replaced = true, alone = true } = {}): void =>
      suspects.about(`text ${nowMs}`, 'query', { ...owner, tenantId }).lost(loss(replaced), alone);
    const brakedMs = (tenantId: string, kind: SuspectKind = 'query'): number =>
      suspects.about('honest', kind, { ...owner, tenantId }).brakedMs;
    for (nowMs = 1; nowMs <= 3; nowMs++) end('tenant');
    for (let i = 0; i < 9; i++) {
      end('tenant', { replaced: false });
      end('tenant', { alone: false });
      end('other', { alone: false });
    }
    expect(brakedMs('tenant')).toBe(0);
    end('tenant');
    // From the first of the four on.
    expect(brakedMs('tenant')).toBe(5000 + 1 - 4);
    expect(brakedMs('other')).toBe(0);
    expect(brakedMs('tenant', { chunking: {} })).toBe(0);
    nowMs = 5000;
    expect(brakedMs('tenant')).toBe(1);
    nowMs = 5001;
    expect(brakedMs('tenant')).toBe(0);
  });

  it('whose texts ended processes has others go alone after one that ended under them', () => {
    const suspects = suspectsWith();
    suspects.about('fatal', 'query', owner).lost(loss(true), true);
    const lostOnce = (tenantId: string): boolean => {
      const suspect = suspects.about('text', 'query', { ...owner, tenantId });
      suspect.lost(loss(true), false);
      return suspect.goesAlone;
    };
    expect(lostOnce('tenant')).toBe(true);
    expect(lostOnce('other')).toBe(false);
  });
});

describe('a quarantine', () => {
  const { signal } = new AbortController();

  it('ends with its turn', async () => {
    let ended = 0;
    const quarantine = new Quarantine<string>({ lapseMs: 60_000, onEnd: () => ended++ });
    const turn = await quarantine.turn(signal);
    expect(quarantine.place).toBeUndefined();
    turn.enter('there');
    expect(quarantine.place).toBe('there');
    turn.end();
    expect(quarantine.place).toBeUndefined();
    expect(ended).toBe(1);
  });

  it('lapses, though its turn goes on, and what it lasted is what others have before the next', async () => {
    const lapsed = Promise.withResolvers<void>();
    const quarantine = new Quarantine<string>({ lapseMs: 50, onEnd: lapsed.resolve });
    const turn = await quarantine.turn(signal);
    turn.enter('there');
    await lapsed.promise;
    expect(quarantine.place).toBeUndefined();
    turn.end();
    const next = await quarantine.turn(signal);
    const waitingSince = performance.now();
    await next.letOthersGo();
    expect(performance.now() - waitingSince).toBeGreaterThan(40);
    next.end();
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
