/**
 * Tokenizers of XLM-R and its like: a Unigram vocabulary, SentencePiece's table of characters, words that begin with `▁`. Other
 * Unigram tokenizers (other normalisers, bytes for unknown characters, words added to the vocabulary) are the library's.
 *
 * The library takes ten times as long for them, needs hundreds of megabytes for a vocabulary of 250,000 pieces, and does not say
 * where tokens lie. `tokenizers` gives the same ids, but for what `unigram-text.ts` says, for special tokens that a text spells,
 * which are text here, and for `▁` at the end of a text, which is left out as SentencePiece does.
 */
import { z } from 'zod';
import { charsmapEntries } from './charsmap.ts';
import { PieceTrie, type PieceTables } from './piece-trie.ts';
import type { FoundPlaces } from './token-places.ts';
import {
  tokenizerSchema,
  type DescribedTokenizer,
  type Steps,
  type TokenizerParts,
} from './tokenizer-parts.ts';
import { PiecePairs, UnigramCutter, type CutPieces, type UnigramVocabulary } from './unigram-pieces.ts';
import {
  NormalText,
  unigramNormalizer,
  wordMark,
  wordStart,
  type UnigramTextOptions,
} from './unigram-text.ts';

/** An unknown character has the least score of the vocabulary less this. */
const unknownPenalty = 10;
/**
 * Scores of XLM-R are f32 and multiples of 2^-22. So sums of a hundred million of them are exact in f64, as sums of integers are.
 */
const exactUnits = 2 ** 22;
/** Words end after so many units of text, at most, and the event loop may have a turn. */
const stepUnits = 4096;
/** In a longer word each piece is a word to those that cut passages. Otherwise a text without spaces were one passage. */
const passageWordUnits = 100;
/** Scripts without spaces between words: here, too, each piece is a word to those that cut passages. */
const unspaced =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Tibetan}]/u;
/** Units below belong to other scripts. */
const firstUnspaced = 0x0e00;

const normalizers = z.array(z.looseObject({ type: z.string() }));
const charsmap = z.looseObject({ type: z.literal('Precompiled'), precompiled_charsmap: z.string().min(1) });
const spacesJoined = z.looseObject({
  type: z.literal('Replace'),
  pattern: z.strictObject({ Regex: z.literal(' {2,}') }),
  content: z.enum([' ', wordMark]),
});
const endStripped = z.looseObject({
  type: z.literal('Strip'),
  strip_left: z.literal(false),
  strip_right: z.literal(true),
});
const whiteSpaceSplit = z.looseObject({ type: z.literal('WhitespaceSplit') });
const metaspace = z.looseObject({
  type: z.literal('Metaspace'),
  replacement: z.literal(wordMark),
  /** Absent in older files, which have `add_prefix_space`. */
  prepend_scheme: z.literal('always').optional(),
  add_prefix_space: z.literal(true).optional(),
  split: z.literal(true).optional(),
});
const idOfTemplate = z.number().int().nonnegative();
const template = z.looseObject({
  type: z.literal('TemplateProcessing'),
  single: z.array(
    z.union([
      z.looseObject({ Sequence: z.looseObject({ id: z.literal('A') }) }),
      z.looseObject({ SpecialToken: z.looseObject({ id: z.string() }) }),
    ]),
  ),
  special_tokens: z.record(z.string(), z.looseObject({ ids: z.array(idOfTemplate) })),
});
const framed = z.looseObject({
  type: z.enum(['RobertaProcessing', 'BertProcessing']),
  cls: z.tuple([z.string(), idOfTemplate]),
  sep: z.tuple([z.string(), idOfTemplate]),
});
const model = z.looseObject({
  type: z.literal('Unigram'),
  unk_id: z.number().int().nonnegative(),
  byte_fallback: z.literal(false).optional(),
  /** Pairs of a piece and its score. They are checked one by one, because a vocabulary has many. */
  vocab: z.array(z.unknown()),
  /** The arrays that `packUnigram` made of them. */
  packed: z.custom<PackedVocabulary>().optional(),
});

/** Returns undefined for a tokenizer of another kind. `isSpecial`: the added token is never found in a text. */
export function unigramParts(
  described: DescribedTokenizer,
  isSpecial: (token: DescribedTokenizer['added_tokens'][number]) => boolean,
): TokenizerParts | undefined {
  const found = unigramOf(described, isSpecial);
  if (found === undefined) return undefined;
  const { frame, specials, unknownId, vocab, packed, charsmap: table, ...text } = found;
  const vocabulary = unpacked(packed ?? packedVocabulary(vocab, unknownId, specials));
  const steps = stepsOf({ ...text, entries: charsmapEntries(table) }, vocabulary);
  return {
    ...frame,
    vocabularySize: [...specials.values()].reduce(
      (size, id) => Math.max(size, id + 1),
      vocabulary.scores.length,
    ),
    unknownId,
    lowercases: false,
    ...steps,
    isExact: true,
    forbiddenIds: [],
    idOf: (token) => specials.get(token) ?? idOfPiece(vocabulary.pieces, token),
    idsWithSpecials: (prompt) => idsWithSpecials(prompt, specials, steps.steps),
  };
}

interface Unigram extends TextSteps {
  readonly frame: Pick<TokenizerParts, 'head' | 'tail'>;
  /** The ids of special tokens. */
  readonly specials: ReadonlyMap<string, number>;
  readonly unknownId: number;
  readonly vocab: readonly unknown[];
  readonly packed: PackedVocabulary | undefined;
}

/** Returns undefined for a tokenizer of another kind. */
function unigramOf(
  described: DescribedTokenizer,
  isSpecial: (token: DescribedTokenizer['added_tokens'][number]) => boolean,
): Unigram | undefined {
  const added = described.added_tokens;
  const text = textSteps(described);
  const frame = frameOf(described.post_processor);
  const found = model.safeParse(described.model);
  if (!found.success || text === undefined || frame === undefined || !added.every(isSpecial))
    return undefined;
  const { vocab, unk_id: unknownId, packed } = found.data;
  const specials = new Map(added.map(({ content, id }) => [content, id]));
  return { ...text, frame, specials, unknownId, vocab, packed };
}

interface TextSteps extends Omit<UnigramTextOptions, 'entries'> {
  /** In base64 (`charsmap.ts`). */
  readonly charsmap: string;
}

/** Returns undefined where normaliser and splitter are none of XLM-R's. */
function textSteps(described: DescribedTokenizer): TextSteps | undefined {
  const { normalizer, pre_tokenizer: splitter } = described;
  const [first, ...others] = listed(normalizer, 'normalizers');
  const table = charsmap.safeParse(first);
  const [last, ...before] = listed(splitter, 'pretokenizers').toReversed();
  const isKnown =
    table.success &&
    others.every((each) => spacesJoined.safeParse(each).success || endStripped.safeParse(each).success) &&
    metaspace.safeParse(last).success &&
    before.length <= 1 &&
    before.every((each) => whiteSpaceSplit.safeParse(each).success);
  if (!isKnown) return undefined;
  const splitsAtWhiteSpace = before.length > 0;
  return {
    charsmap: table.data.precompiled_charsmap,
    splitsAtWhiteSpace,
    joinsSpaces: splitsAtWhiteSpace || others.some((each) => spacesJoined.safeParse(each).success),
  };
}

/** The steps of a normaliser or splitter: those of a sequence, or itself. */
function listed(step: unknown, key: 'normalizers' | 'pretokenizers'): readonly unknown[] {
  const sequence = z.looseObject({ type: z.literal('Sequence'), [key]: normalizers }).safeParse(step);
  return sequence.success ? (sequence.data[key] as readonly unknown[]) : [step];
}

/** The ids around a text. Returns undefined where the template is of another form. */
function frameOf(processor: unknown): Pick<TokenizerParts, 'head' | 'tail'> | undefined {
  if (processor === undefined || processor === null) return { head: [], tail: [] };
  const around = framed.safeParse(processor);
  if (around.success) return { head: [around.data.cls[1]], tail: [around.data.sep[1]] };
  const given = template.safeParse(processor);
  if (!given.success) return undefined;
  const { single, special_tokens: tokens } = given.data;
  const texts = single.flatMap((each, place) => ('Sequence' in each ? [place] : []));
  if (texts.length !== 1) return undefined;
  const idsOf = (parts: typeof single): number[] =>
    parts.flatMap((each) => tokens[(each['SpecialToken'] as { id: string }).id]?.ids ?? []);
  return { head: idsOf(single.slice(0, texts[0])), tail: idsOf(single.slice(texts[0]! + 1)) };
}

/**
 * Returns the description of a tokenizer with its vocabulary packed, if it is one of these. A list of 250,000 pieces takes 30 MB. The
 * packed one takes 7, which a second thread shares.
 */
export function packUnigram(
  tokenizer: Readonly<Record<string, unknown>>,
  isSpecial: (token: DescribedTokenizer['added_tokens'][number]) => boolean,
): Readonly<Record<string, unknown>> {
  const found = unigramOf(tokenizerSchema.parse(tokenizer), isSpecial);
  if (found === undefined) return tokenizer;
  const packed = packedVocabulary(found.vocab, found.unknownId, found.specials);
  return { ...tokenizer, model: { ...(tokenizer['model'] as object), vocab: [], packed } };
}

/** A vocabulary in arrays of shared memory. */
interface PackedVocabulary extends Omit<UnigramVocabulary, 'pieces' | 'pairs'> {
  readonly pieces: PieceTables;
  /** The bits of `PiecePairs`. */
  readonly pairs: Int32Array;
}

function unpacked(vocabulary: PackedVocabulary): UnigramVocabulary {
  return {
    ...vocabulary,
    pieces: new PieceTrie(vocabulary.pieces),
    pairs: new PiecePairs(vocabulary.pairs),
  };
}

/** `specials` are no pieces, whatever the list holds. */
function packedVocabulary(
  list: readonly unknown[],
  unknownId: number,
  specials: ReadonlyMap<string, number>,
): PackedVocabulary {
  if (unknownId >= list.length) throw new Error('the unknown piece is not in the vocabulary');
  const pieces: [string, number][] = [];
  const pairs = new PiecePairs();
  const given = new Float64Array(new SharedArrayBuffer(8 * list.length));
  let least = Infinity;
  for (const [id, entry] of list.entries()) {
    const [piece, score] = Array.isArray(entry) ? (entry as readonly unknown[]) : [];
    if (typeof piece !== 'string' || typeof score !== 'number') {
      throw new Error(`entry ${id} of the vocabulary is no piece with a score`);
    }
    given[id] = score;
    least = Math.min(least, score);
    // A normalised text is well-formed, and each of its spaces stands for a mark.
    if (id === unknownId || specials.has(piece) || piece.includes(wordStart) || !piece.isWellFormed())
      continue;
    const text = piece.replaceAll(wordMark, wordStart);
    pieces.push([text, id]);
    pairs.add(text);
  }
  const single = singleScores(given);
  return {
    pieces: new PieceTrie(pieces).tables,
    pairs: pairs.words,
    scores: single ?? given,
    isExact: single?.every((score) => Number.isInteger(score * exactUnits)) ?? false,
    unknownId,
    unknownScore: (single === undefined ? least : Math.fround(least)) - unknownPenalty,
  };
}

/** The scores as f32, where they are f32 or their shortest decimals, as those of SentencePiece are. */
function singleScores(scores: Float64Array): Float32Array | undefined {
  const single = new Float32Array(new SharedArrayBuffer(4 * scores.length));
  single.set(scores);
  const decimals = 1e7;
  const isSingle = scores.every(
    (score, id) => score === single[id] || Math.round(score * decimals) / decimals === score,
  );
  return isSingle ? single : undefined;
}

function idOfPiece(pieces: PieceTrie, token: string): number | undefined {
  const piece = token.replaceAll(wordMark, wordStart);
  const isPiece =
    token !== '' && !token.includes(wordStart) && pieces.longest(piece, 0, piece.length) === piece.length;
  return isPiece ? pieces.found : undefined;
}

function stepsOf(
  text: UnigramTextOptions,
  vocabulary: UnigramVocabulary,
): Required<Pick<TokenizerParts, 'steps' | 'locate'>> {
  const normalize = unigramNormalizer(text);
  // A table may have 200,000 entries. They are not kept twice.
  const options = { splitsAtWhiteSpace: text.splitsAtWhiteSpace, joinsSpaces: text.joinsSpaces };
  const cutter = new UnigramCutter(vocabulary);
  const steps: Steps = function* (given, ids) {
    const normal = new NormalText(options);
    yield* normalize(given, normal);
    yield* cutText(normal.text, cutter, { ids, ends: [] });
  };
  const locate = function* (given: string, found: FoundPlaces): ReturnType<Steps> {
    const normal = new NormalText(options);
    yield* normalize(given, normal);
    const pieces: CutPieces = { ids: found.ids, ends: [] };
    yield* cutText(normal.text, cutter, pieces);
    yield* placesOf(normal, pieces, found);
  };
  return { steps, locate };
}

function* cutText(normal: string, cutter: UnigramCutter, into: CutPieces): ReturnType<Steps> {
  let turnAt = stepUnits;
  for (let from = 0; from < normal.length;) {
    const next = normal.indexOf(wordStart, from + 1);
    const to = next === -1 ? normal.length : next;
    const steps = cutter.cut(normal, from, to, into);
    if (steps !== undefined) yield* steps;
    from = to;
    if (from < turnAt) continue;
    turnAt = from + stepUnits;
    yield;
  }
}

/** Finds the source of each piece. */
function* placesOf(normal: NormalText, { ends }: CutPieces, found: FoundPlaces): ReturnType<Steps> {
  const sources = normal.sources();
  const { text } = normal;
  let from = 0;
  let wordEnd = 0;
  let isLong = false;
  for (let piece = 0; piece < ends.length; piece++) {
    const to = ends[piece]!;
    const isFirst = from === wordEnd;
    if (isFirst) {
      const next = text.indexOf(wordStart, from + 1);
      wordEnd = next === -1 ? text.length : next;
      isLong = wordEnd - from > passageWordUnits;
    }
    // The beginning of a word has no place of its own.
    const first = isFirst ? from + 1 : from;
    const start = sources.startOf(first);
    found.starts.push(start);
    found.ends.push(to > first ? sources.endOf(to) : start);
    found.wordStarts.push(isFirst || isLong || isUnspaced(text, first) ? 1 : 0);
    from = to;
    if (piece % stepUnits === stepUnits - 1) yield;
  }
}

/** Whether the unit at `at` or the one before belongs to a script without spaces. */
function isUnspaced(text: string, at: number): boolean {
  if (text.charCodeAt(at) < firstUnspaced && text.charCodeAt(at - 1) < firstUnspaced) return false;
  return unspaced.test(text.slice(at - 1, at + 1));
}

/** Special tokens are found first; what lies between them is text. */
function idsWithSpecials(text: string, specials: ReadonlyMap<string, number>, steps: Steps): number[] {
  const ids: number[] = [];
  let from = 0;
  for (let at = 0; at <= text.length; at++) {
    const special = [...specials.keys()]
      .filter((content) => content !== '' && text.startsWith(content, at))
      .reduce((longest, content) => (content.length > longest.length ? content : longest), '');
    if (special === '' && at < text.length) continue;
    for (const _ of steps(text.slice(from, at), ids)) continue;
    if (special === '') break;
    ids.push(specials.get(special)!);
    from = at + special.length;
    at = from - 1;
  }
  return ids;
}
