import { expect, test } from 'vitest';

import { rounds } from '../rounds.ts';
import { pairedDifference } from './paired-difference.ts';
import { announceRandom } from './running/random.ts';

const random = announceRandom('paired difference');

/** Pairs of times on a busy machine: most near 1 ms, some much longer. The first of a pair takes `factor` times as long. */
const pairs = (count: number, factor: number): (readonly [number, number])[] =>
  Array.from({ length: count }, () => {
    const time = (): number => (1 + random.next() * 0.4) * (random.next() < 0.1 ? 10 : 1);
    return [time() * factor, time()];
  });

test('a planted difference of 30% is found', () => {
  expect(pairedDifference(pairs(rounds({ short: 120, nightly: 1000 }), 1.3))).toMatch(/1\.\d+ times as long/);
  expect(pairedDifference(pairs(rounds({ short: 120, nightly: 1000 }), 1 / 1.3))).toMatch(/0\.\d+ times/);
});

test('chance is none', () => {
  for (let n = 0; n < 1000; n += 1) expect(pairedDifference(pairs(60, 1))).toBeUndefined();
});
