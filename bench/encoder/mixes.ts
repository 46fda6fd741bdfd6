/** The texts of the encoder benchmark: runs of real words, cut to the lengths of each mix. */
import { documentSequence, querySequence } from '../../src/encoder/model/colbert-rules.ts';
import type { ServedModel } from '../../src/encoder/model/served-model.ts';
import { seededRandom } from '../lib/seeded-random.ts';
import { chunkTokensMax, type Texts } from '../lib/texts.ts';
import type { Mix } from './contender.ts';

interface MixShape extends Pick<Mix, 'name' | 'kind' | 'inFlight'> {
  /** Content tokens of a text, uniform between the two. */
  readonly tokens: readonly [number, number];
}

export const mixShapes: readonly MixShape[] = [
  { name: 'queries_one_in_flight', kind: 'query', inFlight: 1, tokens: [4, 24] },
  { name: 'queries', kind: 'query', inFlight: 32, tokens: [4, 24] },
  { name: 'documents_short', kind: 'document', inFlight: 1, tokens: [16, 64] },
  { name: 'documents_mixed', kind: 'document', inFlight: 1, tokens: [16, chunkTokensMax] },
  { name: 'documents_long', kind: 'document', inFlight: 1, tokens: [224, chunkTokensMax] },
];

export interface MixOptions {
  /** Its queries are taken as they are; without any they are cut from the documents. */
  readonly source: Pick<Texts, 'documents' | 'queries'>;
  /** Texts of a mix; queries are short and come four times as many. */
  readonly texts: number;
  /** Names of the mixes to make. */
  readonly mixes: readonly string[];
}

export function makeMixes(model: ServedModel, options: MixOptions): readonly Mix[] {
  const { source, mixes } = options;
  return mixShapes
    .filter(({ name }) => mixes.includes(name))
    .map((shape) => {
      const count = options.texts * (shape.kind === 'query' ? 4 : 1);
      const texts =
        shape.kind === 'query' && source.queries.length > 0
          ? Array.from({ length: count }, (_, i) => source.queries[i % source.queries.length] ?? '')
          : cutTexts(model, source.documents, shape.tokens, count);
      const tokens = texts.map((text) => model.tokenizer.encode(text));
      return {
        name: shape.name,
        kind: shape.kind,
        inFlight: shape.inFlight,
        texts,
        sequences: tokens.map(
          (ids) => (shape.kind === 'query' ? querySequence : documentSequence)(model.rules, ids).ids,
        ),
        contentTokens: tokens.reduce((sum, ids) => sum + ids.length, 0),
      };
    });
}

/** Consecutive runs of words. None is empty or longer than it may be. A word that is too long for a text is left out. */
export function cutTexts(
  { tokenizer }: Pick<ServedModel, 'tokenizer'>,
  documents: readonly string[],
  [shortest, longest]: readonly [number, number],
  count: number,
): readonly string[] {
  const random = seededRandom(1);
  const words = documents.flatMap((document) => document.split(/\s+/).filter((word) => word !== ''));
  if (words.length === 0) throw new Error('the source has no text');
  // Words are taken in order, and again from the start when they run out.
  let next = 0;
  return Array.from({ length: count }, () => {
    const wanted = shortest + Math.floor(random() * (longest - shortest + 1));
    const taken: string[] = [];
    for (let tokens = 0, tried = 0; tokens < wanted; tried++) {
      if (taken.length === 0 && tried === words.length) {
        throw new Error(`the source has no word of up to ${wanted} tokens`);
      }
      const word = words[next++ % words.length]!;
      const length = tokenizer.encode(word).length;
      if (tokens + length <= wanted) {
        taken.push(word);
        tokens += length;
      } else if (taken.length > 0) break;
    }
    return taken.join(' ');
  });
}
