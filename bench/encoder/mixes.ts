/** The texts of the encoder benchmark: runs of real words, cut to the lengths of each mix. */
import { beirFile, documentText } from '../../src/cli/beir/directory.ts';
import { readQueries } from '../../src/cli/beir/judgements.ts';
import { parseLine, readLines } from '../../src/cli/jsonl.ts';
import { documentSequence, querySequence } from '../../src/encoder/colbert-rules.ts';
import type { ServedModel } from '../../src/encoder/served-model.ts';
import { seededRandom } from '../seeded-random.ts';
import { packageTexts } from '../texts.ts';
import type { Mix } from './contender.ts';

interface MixShape extends Pick<Mix, 'name' | 'kind' | 'inFlight'> {
  /** Content tokens of a text, uniform between the two. */
  readonly tokens: readonly [number, number];
}

/** The longest chunk of the service's own chunking defaults. */
export const chunkTokensMax = 256;

export const mixShapes: readonly MixShape[] = [
  { name: 'queries_one_in_flight', kind: 'query', inFlight: 1, tokens: [4, 24] },
  { name: 'queries', kind: 'query', inFlight: 32, tokens: [4, 24] },
  { name: 'documents_short', kind: 'document', inFlight: 1, tokens: [16, 64] },
  { name: 'documents_mixed', kind: 'document', inFlight: 1, tokens: [16, chunkTokensMax] },
  { name: 'documents_long', kind: 'document', inFlight: 1, tokens: [224, chunkTokensMax] },
];

export interface SourceTexts {
  readonly description: string;
  readonly documents: readonly string[];
  /** Taken as they are; without them queries are cut from the documents. */
  readonly queries: readonly string[];
}

/** Enough source texts for every mix of `texts` texts; a BEIR directory's, or those of the installed packages. */
export async function readSource(texts: number, beir: string | undefined): Promise<SourceTexts> {
  if (beir === undefined) {
    return {
      description: 'documentation of the installed packages',
      documents: packageTexts(texts * 4),
      queries: [],
    };
  }
  const documents: string[] = [];
  for await (const line of readLines(beirFile(beir, 'corpus'))) {
    const parsed = parseLine(line);
    if ('problem' in parsed) throw new Error(`${beir}: corpus line ${line.number}: ${parsed.problem}`);
    const { title, text } = parsed.object;
    documents.push(documentText(stringOf(title), stringOf(text)));
    if (documents.length >= texts * 4) break;
  }
  const queries = await readQueries(beir);
  return { description: beir, documents, queries: queries.map(({ text }) => text) };
}

export interface MixOptions {
  readonly source: SourceTexts;
  /** Texts of a mix; queries are short and come four times as many. */
  readonly texts: number;
  readonly seed: number;
}

export function makeMixes(model: ServedModel, options: MixOptions): readonly Mix[] {
  const { source, seed } = options;
  return mixShapes.map((shape) => {
    const count = options.texts * (shape.kind === 'query' ? 4 : 1);
    const texts =
      shape.kind === 'query' && source.queries.length > 0
        ? Array.from({ length: count }, (_, i) => source.queries[i % source.queries.length] ?? '')
        : cutTexts(model, source.documents, shape.tokens, count, seed);
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

/** Consecutive runs of words, none longer than asked for. */
function cutTexts(
  { tokenizer }: ServedModel,
  documents: readonly string[],
  [shortest, longest]: readonly [number, number],
  count: number,
  seed: number,
): readonly string[] {
  const random = seededRandom(seed);
  const words = wordsOf(documents);
  return Array.from({ length: count }, () => {
    const wanted = shortest + Math.floor(random() * (longest - shortest + 1));
    const taken: string[] = [];
    for (let tokens = 0; tokens < wanted;) {
      const word = words.next().value;
      const length = tokenizer.encode(word).length;
      if (tokens + length > wanted) break;
      taken.push(word);
      tokens += length;
    }
    return taken.join(' ');
  });
}

/** All words in order, again from the start when they run out. */
function* wordsOf(documents: readonly string[]): Generator<string, never, undefined> {
  if (!documents.some((document) => /\S/.test(document))) throw new Error('the source has no text');
  for (;;) {
    for (const document of documents) yield* document.split(/\s+/).filter((word) => word !== '');
  }
}

function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
