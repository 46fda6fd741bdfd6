/** How an import adapts to a slow service. The Python client passes the same cases. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { Pace, type LateBatch } from '../../../clients/typescript/src/import/pace.ts';

interface Step {
  readonly stored?: number;
  readonly refused?: number;
  readonly late?: LateBatch;
  readonly verdict?: number | string;
  readonly requests: number;
  readonly documents: number;
}

interface Case {
  readonly name: string;
  readonly requestsMax: number;
  readonly steps: readonly Step[];
}

const cases = JSON.parse(
  readFileSync(path.join(import.meta.dirname, 'pace.json'), 'utf8'),
) as readonly Case[];

describe('the pace of an import', () => {
  test.each(cases)('$name', ({ requestsMax, steps }) => {
    const pace = new Pace(requestsMax);
    for (const { stored = 0, refused = 0, late, ...expected } of steps) {
      for (let times = 0; times < stored; times += 1) pace.stored();
      for (let times = 0; times < refused; times += 1) pace.refused();
      const verdict = late === undefined ? {} : { verdict: pace.late(late) };
      expect({ ...verdict, requests: pace.requests, documents: pace.documents }).toEqual(expected);
    }
  });
});
