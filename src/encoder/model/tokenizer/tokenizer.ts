/**
 * The only importer of the tokenizer library.
 *
 * Special strings in a text are ordinary text: `[MASK]`, `[CLS]` or a prefix that a user writes is split like any other word,
 * because the library gets no added tokens of that kind. Special tokens come from the model's rules alone.
 *
 * BERT tokenizers get our own normaliser and word splitter, which agree with Hugging Face's on every code point (`bert-text.ts`),
 * and our own WordPiece (`word-pieces.ts`). The library takes ten times as long, because it passes strings from step to step.
 *
 * A text is tokenised in steps. Between them the event loop has turns, so that 100 KiB of text do not delay health checks and
 * queries. Time is linear in the bytes of a text, whatever it holds. BERT tokenizers give the same ids in steps as in one go. For
 * other tokenizers the library gets slices of the text, because it takes time quadratic in the length of a run of marks. Where a
 * text has no space in a thousand characters, a slice ends within a word.
 */
import { Tokenizer as LibraryTokenizer } from '@huggingface/tokenizers';
import { setImmediate as turn } from 'node:timers/promises';
import { z } from 'zod';
import { bertNormalizer, bertWords, forEachBertWord, plainAscii, type BertNormalizer } from './bert-text.ts';
import { withoutOuterSpace } from './outer-space.ts';
import { createPieceLengths, locateBertTokens, type FoundPlaces, type TokenPlaces } from './token-places.ts';
import { createWordPieces, type WordPieces } from './word-pieces.ts';

export interface Tokenizer {
  /** Ids before and after a text, by the tokenizer's template (`CLS`, `SEP`). */
  readonly head: readonly number[];
  readonly tail: readonly number[];
  readonly vocabularySize: number;
  /** The id for text that the vocabulary does not have. Absent where the vocabulary has every text. */
  readonly unknownId: number | undefined;
  /** Token ids of a text, without special tokens. */
  encode(text: string): Int32Array;
  /** The same, with turns of the event loop in between. Rejects with the reason of the signal when it aborts. */
  encodeInSlices(text: string, signal: AbortSignal): Promise<Int32Array>;
  /** Where each token of `encode` lies in the text; `undefined` where that is unknown. Works in slices too. */
  locateInSlices(text: string, signal: AbortSignal): Promise<TokenPlaces | undefined>;
  /** Id of a vocabulary entry. */
  idOf(token: string): number | undefined;
  /** Tokenises a text of the model itself that is put before others. Special tokens in it are special. */
  prompt(text: string): Prompt;
}

export interface Prompt {
  readonly ids: readonly number[];
  /** White space at its end. It is tokenised with the text that follows, because byte-level tokens begin with their space. */
  readonly lead: string;
}

export interface TokenizerOptions {
  /** Parsed tokenizer.json and tokenizer_config.json. */
  readonly tokenizer: Readonly<Record<string, unknown>>;
  readonly tokenizerConfig: Readonly<Record<string, unknown>>;
  /** Strings that are special to the model but not to the tokenizer (prefixes). */
  readonly specialStrings: readonly string[];
  /** Texts are lowercased first, for exports whose tokenizer lacks that step. */
  readonly lowercase: boolean;
  /** Outer white space of texts is left out, as PyLate does. */
  readonly strip: boolean;
}

/** A bound on ids, because tables are as long as the largest id. No vocabulary comes near it. */
const tokenIdMax = 1 << 24;
const tokenId = z.number().int().min(0).max(tokenIdMax);

const normalizerSchema = z.looseObject({
  type: z.string(),
  clean_text: z.boolean().default(true),
  handle_chinese_chars: z.boolean().default(true),
  strip_accents: z.boolean().nullish(),
  lowercase: z.boolean().default(true),
});
type Normalizer = z.output<typeof normalizerSchema>;

const tokenizerSchema = z.looseObject({
  added_tokens: z
    .array(z.looseObject({ id: tokenId, content: z.string(), special: z.boolean().default(false) }))
    .default([]),
  normalizer: normalizerSchema.extend({ normalizers: z.array(normalizerSchema).optional() }).nullish(),
  pre_tokenizer: z.looseObject({ type: z.string() }).nullish(),
  model: z.looseObject({
    type: z.string().nullish(),
    /** Null in tokenizers other than WordPiece. */
    continuing_subword_prefix: z.string().nullish(),
    max_input_chars_per_word: z.number().default(100),
    vocab: z.unknown().refine(hasUsableIds, `ids must be integers from 0 to ${tokenIdMax}`),
  }),
});

/** Tokenises a text in steps. It appends to `ids`, and yields where the event loop may have a turn. */
type Steps = (text: string, ids: number[]) => Generator<void, void, undefined>;

/** The time between two turns of the event loop. */
const turnMs = 2;
/** Characters of a step, which takes about 1 ms. */
const stepCharacters = 4096;
/** The library takes some 10 us per character. A slice ends before a space that follows another character, if there is one. */
const librarySlices = /[^]{1,1024}$|[^]{1,1024}(?<=\S)(?= )|[^]{1,1024}/gu;

export function createTokenizer(options: TokenizerOptions): Tokenizer {
  const described = tokenizerSchema.parse(options.tokenizer);
  const withSpecials = new LibraryTokenizer(options.tokenizer, options.tokenizerConfig);
  const { head, tail } = specialFrame(withSpecials);
  const isSpecial = (token: { content: string; special: boolean }): boolean =>
    token.special || options.specialStrings.includes(token.content);
  const added = described.added_tokens.filter((token) => !isSpecial(token));
  const plain = new LibraryTokenizer({ ...options.tokenizer, added_tokens: added }, options.tokenizerConfig);
  const { steps, locate, lowercases } = pipelineOf(described, plain, withSpecials, added.length > 0);
  const lowercaseFirst = options.lowercase && !lowercases;
  const unknownId = plain.model?.unk_token_id;
  const finish = finisher(described.added_tokens.filter(isSpecial), unknownId);

  const stepsOf = (text: string, ids: number[]): ReturnType<Steps> => {
    const wellFormed = text.toWellFormed();
    const stripped = options.strip ? withoutOuterSpace(wellFormed) : wellFormed;
    return steps(lowercaseFirst ? stripped.toLowerCase() : stripped, ids);
  };

  return {
    head,
    tail,
    vocabularySize: withSpecials.get_vocab().size,
    unknownId,
    encode: (text) => {
      const ids: number[] = [];
      for (const _ of stepsOf(text, ids)) continue;
      return finish(ids);
    },
    encodeInSlices: async (text, signal) => {
      const ids: number[] = [];
      await inSlices(stepsOf(text, ids), signal);
      return finish(ids);
    },
    locateInSlices: async (text, signal) => {
      if (locate === undefined || lowercaseFirst) return undefined;
      const wellFormed = text.toWellFormed();
      const found: FoundPlaces = { ids: [], starts: [], ends: [], wordStarts: [] };
      await inSlices(locate(wellFormed, found), signal);
      if (!plainAscii.test(wellFormed)) {
        const ids: number[] = [];
        await inSlices(stepsOf(wellFormed, ids), signal);
        if (!isSame(found.ids, ids)) return undefined;
      }
      return {
        ids: finish(found.ids),
        starts: new Uint32Array(found.starts),
        ends: new Uint32Array(found.ends),
        wordStarts: new Uint8Array(found.wordStarts),
      };
    },
    idOf: (token) => withSpecials.token_to_id(token),
    prompt: (text) => promptOf(text, withSpecials, described.added_tokens),
  };
}

interface Pipeline {
  readonly steps: Steps;
  /** Finds the places of tokens; absent where that cannot be done. */
  readonly locate?: (text: string, into: FoundPlaces) => ReturnType<Steps>;
  /** Whether the normaliser lowercases. */
  readonly lowercases: boolean;
}

/** BERT's steps are our own. For other tokenizers, and for words that are added to the vocabulary, the library works. */
function pipelineOf(
  { normalizer: described, pre_tokenizer: preTokenizer, model }: z.output<typeof tokenizerSchema>,
  plain: LibraryTokenizer,
  withSpecials: LibraryTokenizer,
  hasAddedWords: boolean,
): Pipeline {
  const normalizer = withoutLowercase(described);
  if (normalizer?.type !== 'BertNormalizer' || preTokenizer?.type !== 'BertPreTokenizer')
    return { steps: librarySteps(plain), lowercases: false };
  const { lowercase: lowercases } = normalizer;
  const normalize = bertNormalizer({
    cleanText: normalizer.clean_text,
    chineseCharacters: normalizer.handle_chinese_chars,
    stripAccents: normalizer.strip_accents ?? lowercases,
    lowercase: lowercases,
  });
  for (const each of [plain, withSpecials]) {
    each.normalizer = normalize;
    each.pre_tokenizer = bertWords;
  }
  const unknownId = plain.model?.unk_token_id;
  if (model.type !== 'WordPiece' || unknownId === undefined || hasAddedWords)
    return { steps: librarySteps(plain), lowercases };
  const vocabulary = plain.model.tokens_to_ids;
  const continuationPrefix = model.continuing_subword_prefix ?? '##';
  const charactersMax = model.max_input_chars_per_word;
  const appendPieces = createWordPieces({ vocabulary, continuationPrefix, unknownId, charactersMax });
  const pieces = createPieceLengths(vocabulary, continuationPrefix);
  return {
    steps: bertSteps(normalize, appendPieces),
    locate: (text, into) => locateBertTokens(text, { normalize, appendPieces, pieces, unknownId }, into),
    lowercases,
  };
}

/**
 * Some vocabularies (Unigram) hold special tokens as ordinary pieces. The function that this returns makes unknown tokens of
 * them.
 */
function finisher(
  special: readonly { readonly id: number }[],
  unknownId: number | undefined,
): (ids: readonly number[]) => Int32Array {
  const isForbidden = new Uint8Array(Math.max(0, ...special.map(({ id }) => id + 1)));
  for (const { id } of special) isForbidden[id] = 1;
  if (unknownId !== undefined) isForbidden[unknownId] = 0;
  return (ids) => {
    const result = new Int32Array(ids);
    for (let i = 0; i < result.length; i++) {
      if (isForbidden[result[i]!] === 1) result[i] = unknownId ?? 0;
    }
    return result;
  };
}

/** Runs all steps, with turns of the event loop in between. */
async function inSlices(steps: ReturnType<Steps>, signal: AbortSignal): Promise<void> {
  let turnAt = performance.now() + turnMs;
  signal.throwIfAborted();
  for (const _ of steps) {
    if (performance.now() < turnAt) continue;
    await turn();
    signal.throwIfAborted();
    turnAt = performance.now() + turnMs;
  }
}

function isSame(some: ArrayLike<number>, others: readonly number[]): boolean {
  return some.length === others.length && others.every((id, place) => some[place] === id);
}

/** The ids of a vocabulary that is a list are its places. */
function hasUsableIds(vocabulary: unknown): boolean {
  if (typeof vocabulary !== 'object' || vocabulary === null || Array.isArray(vocabulary)) return true;
  return Object.values(vocabulary).every((id) => Number.isInteger(id) && id >= 0 && id <= tokenIdMax);
}

function bertSteps(normalize: BertNormalizer, appendPieces: WordPieces): Steps {
  return function* (text, ids) {
    const parts: string[] = [];
    for (const part of normalize.parts(text)) {
      parts.push(part);
      yield;
    }
    const normal = parts.join('');
    const take = (from: number, to: number): void => appendPieces(normal, from, to, ids);
    for (let from = 0; from < normal.length; yield) {
      from = forEachBertWord(normal, { from, enough: from + stepCharacters }, take);
    }
  };
}

function librarySteps(tokenizer: LibraryTokenizer): Steps {
  return function* (text, ids) {
    try {
      for (const slice of text.match(librarySlices) ?? []) {
        for (const id of tokenizer.encode(slice, { add_special_tokens: false }).ids) ids.push(id);
        yield;
      }
    } finally {
      // The library caches the pieces of words. But no text may outlive its request.
      tokenizer.model?.clear_cache?.();
    }
  };
}

/**
 * With `do_lower_case` sentence-transformers lowercases before BERT's normaliser. BERT's normaliser with `lowercase` gives the same
 * for every code point (`tokenizers` 0.23.3), so the first step is dropped.
 */
function withoutLowercase(
  normalizer: (Normalizer & { readonly normalizers?: readonly Normalizer[] | undefined }) | null | undefined,
): Normalizer | null | undefined {
  const [first, second, ...others] = normalizer?.normalizers ?? [];
  if (first?.type !== 'Lowercase' || second?.type !== 'BertNormalizer' || others.length > 0)
    return normalizer;
  return { ...second, strip_accents: second.strip_accents ?? second.lowercase, lowercase: true };
}

function promptOf(
  text: string,
  tokenizer: LibraryTokenizer,
  added: readonly { readonly content: string }[],
): Prompt {
  // An added token may end with the space, as PyLate's "[Q] " does.
  const holdsSpace = added.some(({ content }) => content !== content.trimEnd() && text.endsWith(content));
  const words = holdsSpace ? text : text.trimEnd();
  const { ids } = tokenizer.encode(words, { add_special_tokens: false });
  return { ids, lead: text.slice(words.length) };
}

/** The ids that the tokenizer's template puts around a text. */
function specialFrame(tokenizer: LibraryTokenizer): { head: number[]; tail: number[] } {
  const probe = 'a';
  const framed: number[] = tokenizer.encode(probe).ids;
  const bare: number[] = tokenizer.encode(probe, { add_special_tokens: false }).ids;
  for (let start = 0; start + bare.length <= framed.length; start++) {
    if (bare.every((id, i) => framed[start + i] === id)) {
      return { head: framed.slice(0, start), tail: framed.slice(start + bare.length) };
    }
  }
  throw new Error('the tokenizer puts special tokens inside the text');
}
