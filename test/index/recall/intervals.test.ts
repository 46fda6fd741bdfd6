/** The interval of the measured recall of an index that changes, beside exact searches; test/nightly/recall-intervals.test.ts does it with a model. */
import { expect, it } from 'vitest';
import { Blur } from '../../native/sample.ts';
import { announceRandom } from '../../support/running/random.ts';
import { ChangingIndex, type Texts } from './changing-index.ts';
import { momentsOf } from './moments.ts';

const dim = 32;
const moments = 14;

it('the interval holds the true recall at nine moments of ten while the texts of an index change', async () => {
  const random = announceRandom('moments of an index');
  const [easy, hard] = [new Blur(() => random.next(), dim), new Blur(() => random.next(), dim)];
  const of = (blur: Blur, records: number, rows: number, spread: number): Texts => ({
    dim,
    rowBits: 8,
    records,
    record: (versionId) => blur.record(versionId, rows, spread),
    query: () => blur.query(8, spread),
  });
  const texts = (moment: number): Texts =>
    moment === 0 ? of(easy, 1_000, 6, 0.6) : moment < 4 ? of(easy, 100, 6, 0.6) : of(hard, 250, 10, 1.3);
  const queries = Array.from({ length: 60 }, (_, place) => (place < 30 ? texts(1) : texts(9)).query());
  const found = await momentsOf({
    index: new ChangingIndex({ dim, rowBits: 8 }),
    random,
    queries,
    texts,
    moments,
    measured: 30,
    removed: 0.03,
  });
  const held = found.filter(({ holds }) => holds).length;
  console.log(`${held} of ${found.length} intervals hold the true recall`);
  expect(found.length).toBeGreaterThan(0.8 * moments);
  expect(held / found.length).toBeGreaterThanOrEqual(0.9);
});
