/**
 * The interval of the measured recall of an index of 30,000 chunks, encoded by the tiny model, beside exact searches at 50 moments. Its chunks become
 * more and others all the time.
 */
import { expect, it } from 'vitest';
import type { EncodedDocument } from '../../src/encoder/protocol/contract.ts';
import { ChangingIndex, type Texts } from '../index/recall/changing-index.ts';
import { momentsOf } from '../index/recall/moments.ts';
import { isNightly, rounds } from '../rounds.ts';
import { callOptions, encodersOfTest } from '../support/encoder/encoders.ts';
import { announceRandom } from '../support/running/random.ts';

const chunksAtLast = rounds({ short: 1_500, nightly: 30_000 });
const moments = rounds({ short: 5, nightly: 50 });
const queriesAsked = rounds({ short: 40, nightly: 300 });
const measured = 30;
const removed = 0.02;
const encodedAtOnce = 500;
const words = 'the late interaction of token vectors in every document query mask is over small models'.split(
  ' ',
);
const letters = 'a b c d e f g h i j k l m n o p q r s t u v'.split(' ');

it.runIf(isNightly())(
  'the interval holds the true recall at nine moments of ten',
  { timeout: 3_600_000 },
  async () => {
    const random = announceRandom('moments of an index of the tiny model');
    const { pool } = await encodersOfTest();
    const { dim, rowBits } = pool.models()[0]!;
    const chunking = { maxTokens: 21, overlapTokens: 2, minimumChunkTokens: 1 };
    const textOf = (from: readonly string[], count: number): string =>
      Array.from({ length: count }, () => random.pick(from)).join(' ');
    const encode = async (texts: readonly string[]): Promise<readonly EncodedDocument[]> => {
      const encoded: EncodedDocument[] = [];
      for (let at = 0; at < texts.length; at += encodedAtOnce) {
        const options = { ...callOptions(pool), chunking, onTokenCounts: () => undefined };
        for await (const one of pool.encodeDocuments(texts.slice(at, at + encodedAtOnce), options))
          encoded.push(one);
      }
      return encoded;
    };
    const encodedQuery = async (text: string): Promise<Float32Array> =>
      (await pool.encodeQuery(text, callOptions(pool))).vectors;
    // Short texts of few words at first, then long ones of all words and letters.
    const isShort = (moment: number): boolean => moment < moments / 3;
    const newText = (moment: number): string =>
      isShort(moment) ? textOf(words.slice(0, 6), 6) : textOf([...words, ...letters], 18);
    const queries = await Promise.all(
      Array.from({ length: queriesAsked }, (_, place) =>
        encodedQuery(place % 2 === 0 ? textOf(words.slice(0, 6), 4) : textOf([...words, ...letters], 5)),
      ),
    );
    const countOf = (moment: number): number =>
      Math.round((chunksAtLast / moments) * (moment === 0 ? moments / 4 : 1.3));
    const found = await momentsOf({
      index: new ChangingIndex({ dim, rowBits }),
      random,
      queries,
      texts: async (moment): Promise<Texts> => {
        const encoded = await encode(Array.from({ length: countOf(moment) }, () => newText(moment)));
        return {
          dim,
          rowBits,
          records: encoded.length,
          record: (versionId, at) => ({ ...encoded[at]!, versionId, terms: new Uint8Array(0) }),
          query: () => queries[0]!,
        };
      },
      moments,
      measured,
      removed,
    });
    const held = found.filter(({ holds }) => holds).length;
    console.log(`${held} of ${found.length} intervals hold the true recall`);
    expect(found.length).toBeGreaterThan(0.8 * moments);
    if (moments >= 50) expect(held / found.length).toBeGreaterThanOrEqual(0.9);
  },
);
