/**
 * An index of the real engine whose texts change: short ones, whose codes say nearly all of them, then four fifths long ones of another kind. At last
 * others replace all of them. The breadth brings the recall back into the band, by exhaustive searches that the controller does not see.
 *
 * `TEST_CHANGING_EMBEDDINGS=SHORT,LONG,OTHER` names embeddings of real text (`npm run bench -- search-embed`). Those of another model have as many
 * dimensions. Without it vectors are generated, and the others lie around other centres.
 */
import { expect, it } from 'vitest';
import { documentsOf, rowsOf } from '../../../bench/search/corpus.ts';
import { openEmbeddings } from '../../../bench/search/embedding-directory.ts';
import { breadthMin, safeBreadth } from '../../../src/index/recall/breadth.ts';
import { Blur } from '../../native/sample.ts';
import { rounds } from '../../rounds.ts';
import { announceRandom, type Random } from '../../support/running/random.ts';
import { ChangingIndex, type Texts } from './changing-index.ts';

const embeddings = process.env['TEST_CHANGING_EMBEDDINGS']?.split(',');
const records = rounds({ short: 3_000, nightly: 8_000 });
const truths = rounds({ short: 400, nightly: 1_000 });
/** Twice the error of so many truths. */
const error = 0.16 / Math.sqrt(truths);

it('recall is back in the band after at most 600 measured searches', { timeout: 1_800_000 }, async () => {
  const random = announceRandom('changing texts');
  const [short, long, other] =
    embeddings?.map((directory) => realTexts(directory, random)) ?? generatedTexts(random);
  const index = new ChangingIndex(short!);
  const expectBand = async (texts: () => Texts): Promise<void> => {
    const found = await index.truth(queriesOf(texts));
    expect(found).toBeGreaterThan(0.98 - error);
    if (index.recall.breadth > breadthMin) expect(found).toBeLessThan(0.99 + error);
  };
  await index.replace(short!, 0);
  await index.measure(300, () => short!.query());
  const narrow = index.recall.breadth;
  expect(narrow).toBeLessThan(safeBreadth);

  await index.replace(long!, 0.8);
  const mixed = (): Texts => (random.next() < 0.8 ? long! : short!);
  const changed = await index.truth(queriesOf(mixed));
  await index.measure(600, () => mixed().query());
  await expectBand(mixed);
  if (embeddings === undefined) {
    expect(changed).toBeLessThan(0.975);
    expect(index.recall.breadth).toBeGreaterThan(narrow);
  }

  await index.replace(other!, 1);
  await index.truth(queriesOf(() => other!));
  await index.measure(600, () => other!.query());
  await expectBand(() => other!);
});

function queriesOf(texts: () => Texts): readonly Float32Array[] {
  return Array.from({ length: truths }, () => texts().query());
}

function realTexts(directory: string, random: Random): Texts {
  const corpus = openEmbeddings(directory, undefined);
  const { dim, rowBits } = corpus;
  return {
    dim,
    rowBits,
    records: documentsOf(corpus),
    record: (versionId, at) => ({
      versionId,
      chunkRows: rowsOf(corpus, at),
      ...corpus.read(at, at + 1),
      terms: new Uint8Array(0),
    }),
    query: () => random.pick(corpus.queries).vectors,
  };
}

function generatedTexts(random: Random): readonly Texts[] {
  const dim = 64;
  const [blur, other] = [new Blur(() => random.next(), dim), new Blur(() => random.next(), dim)];
  const of = (centres: Blur, count: number, rows: number, spread: number): Texts => ({
    dim,
    rowBits: 8,
    records: count,
    record: (versionId) => centres.record(versionId, rows, spread),
    query: () => centres.query(16, spread),
  });
  const wide = rounds({ short: 1.1, nightly: 1.05 });
  return [of(blur, records, 8, 0.8), of(blur, 4 * records, 16, wide), of(other, 4 * records, 16, wide)];
}
