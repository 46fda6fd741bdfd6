/**
 * The only importer of the tokenizer library. Texts are ordinary text throughout: `[MASK]`, `[CLS]`, a prefix or any
 * other special string that a user writes is split like every other word, because the library is built
 * without added tokens of that kind. Special tokens come from the model's rules, never from the text.
 *
 * BERT tokenizers get a normaliser and a word splitter that agree with Hugging Face's on every code point
 * (`bert-text.ts`), and a WordPiece of our own (`word-pieces.ts`): the library spends ten times as long on passing
 * strings from step to step.
 *
 * A text is tokenised step by step with turns of the event loop between them, so that 100 KiB of text do not hold up the
 * thread that answers health checks and queries. Time is linear in the bytes of a text, whatever it holds. BERT
 * tokenizers give the same ids as in one go. The library, which is slow and takes time quadratic in the length of a run of
 * marks, gets slices; where a text has no space for a thousand characters, they end within words.
 */
import { Tokenizer as LibraryTokenizer } from '@huggingface/tokenizers';
import { setImmediate as turn } from 'node:timers/promises';
import { z } from 'zod';
import { bertNormalizer, bertWords, forEachBertWord, type BertNormalizer } from './bert-text.ts';
import { withoutOuterSpace } from './outer-space.ts';
import { createPieceLengths, locateBertTokens, type FoundPlaces, type TokenPlaces } from './token-places.ts';
import { createWordPieces, type WordPieces } from './word-pieces.ts';

export interface Tokenizer {
  /** Ids that the tokenizer puts before and after a text (`CLS`, `SEP`). */
  readonly head: readonly number[];
  readonly tail: readonly number[];
  readonly vocabularySize: number;
  /** Stands for text that the vocabulary does not have; absent where it has every text. */
  readonly unknownId: number | undefined;
  /** Token ids of a text, special tokens excluded. */
  encode(text: string): Int32Array;
  /** The same, with turns of the event loop between; rejects with the signal's reason once it is aborted. */
  encodeInSlices(text: string, signal: AbortSignal): Promise<Int32Array>;
  /** Likewise, where each token of `encode` lies in the text; `undefined` where that cannot be said. */
  locateInSlices(text: string, signal: AbortSignal): Promise<TokenPlaces | undefined>;
  /** Id of a vocabulary entry. */
  idOf(token: string): number | undefined;
  /** A text of the model's own that stands before others. Special tokens in it are special. */
  prompt(text: string): Prompt;
}

export interface Prompt {
  readonly ids: readonly number[];
  /** White space at its end. It is tokenised with the text that follows: byte-level tokens begin with their space. */
  readonly lead: string;
}

export interface TokenizerOptions {
  /** Parsed tokenizer.json and tokenizer_config.json. */
  readonly tokenizer: Readonly<Record<string, unknown>>;
  readonly tokenizerConfig: Readonly<Record<string, unknown>>;
  /** Strings that are special to the model though the tokenizer does not say so (prefixes). */
  readonly specialStrings: readonly string[];
  /** Lowercase texts first (exports whose tokenizer lacks that step). */
  readonly lowercase: boolean;
  /** Leave out white space at both ends of texts, as PyLate does. */
  readonly strip: boolean;
}

/** Tables are as long as the largest id: no vocabulary comes near this one. */
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
    /** Null in tokenizers that are no WordPiece. */
    continuing_subword_prefix: z.string().nullish(),
    max_input_chars_per_word: z.number().default(100),
    vocab: z.unknown().refine(hasUsableIds, `ids must be integers from 0 to ${tokenIdMax}`),
  }),
});

/** Tokenises a text step by step: appends to `ids`, and yields where there may be a turn of the event loop. */
type Steps = (text: string, ids: number[]) => Generator<void, void, undefined>;

/** After so long there is a turn. */
const turnMs = 2;
/** Characters of a step: about 1 ms of work. */
const stepCharacters = 4096;
/** The library takes some 10 us a character. A slice ends before a space that follows something else, where there is one. */
const librarySlices = /[^]{1,1024}$|[^]{1,1024}(?<=\S)(?= )|[^]{1,1024}/gu;

export function createTokenizer(options: TokenizerOptions): Tokenizer {
  const described = tokenizerSchema.parse(options.tokenizer);
  const withSpecials = new LibraryTokenizer(options.tokenizer, options.tokenizerConfig);
  const { head, tail } = specialFrame(withSpecials);

  const isSpecial = (token: { content: string; special: boolean }): boolean =>
    token.special || options.specialStrings.includes(token.content);
  const added = described.added_tokens.filter((token) => !isSpecial(token));
  const plain = new LibraryTokenizer({ ...options.tokenizer, added_tokens: added }, options.tokenizerConfig);
  const { pre_tokenizer: preTokenizer, model } = described;
  const normalizer = withoutLowercase(described.normalizer);
  let steps = librarySteps(plain);
  let locate: ((text: string, into: FoundPlaces) => ReturnType<Steps>) | undefined;
  const isBert = normalizer?.type === 'BertNormalizer' && preTokenizer?.type === 'BertPreTokenizer';
  if (isBert) {
    const normalize = bertNormalizer({
      cleanText: normalizer.clean_text,
      chineseCharacters: normalizer.handle_chinese_chars,
      stripAccents: normalizer.strip_accents ?? normalizer.lowercase,
      lowercase: normalizer.lowercase,
    });
    for (const each of [plain, withSpecials]) {
      each.normalizer = normalize;
      each.pre_tokenizer = bertWords;
    }
    const unknown = plain.model?.unk_token_id;
    if (model.type === 'WordPiece' && unknown !== undefined && added.length === 0) {
      const appendPieces = createWordPieces({
        vocabulary: plain.model.tokens_to_ids,
        continuationPrefix: model.continuing_subword_prefix ?? '##',
        unknownId: unknown,
        charactersMax: model.max_input_chars_per_word,
      });
      steps = bertSteps(normalize, appendPieces);
      const pieces = createPieceLengths(plain.model.tokens_to_ids, model.continuing_subword_prefix ?? '##');
      const parts = { normalize, appendPieces, pieces, unknownId: unknown };
      locate = (text, into) => locateBertTokens(text, parts, into);
    }
  }

  const lowercaseFirst = options.lowercase && !(isBert && normalizer.lowercase);

  // Some vocabularies (Unigram) hold special tokens as ordinary pieces: those become unknown tokens.
  const unknownId = plain.model?.unk_token_id;
  const isForbidden = new Uint8Array(Math.max(0, ...described.added_tokens.map(({ id }) => id + 1)));
  for (const { id } of described.added_tokens.filter(isSpecial)) isForbidden[id] = 1;
  if (unknownId !== undefined) isForbidden[unknownId] = 0;

  const stepsOf = (text: string, ids: number[]): ReturnType<Steps> => {
    const wellFormed = text.toWellFormed();
    const stripped = options.strip ? withoutOuterSpace(wellFormed) : wellFormed;
    return steps(lowercaseFirst ? stripped.toLowerCase() : stripped, ids);
  };
  const finish = (ids: readonly number[]): Int32Array => {
    const result = new Int32Array(ids);
    for (let i = 0; i < result.length; i++) {
      if (isForbidden[result[i]!] === 1) result[i] = unknownId ?? 0;
    }
    return result;
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
      const found: FoundPlaces = { ids: [], starts: [], ends: [] };
      await inSlices(locate(wellFormed, found), signal);
      const ids: number[] = [];
      await inSlices(stepsOf(wellFormed, ids), signal);
      if (!isSame(found.ids, ids)) return undefined;
      return { ids: finish(ids), starts: Uint32Array.from(found.starts), ends: Uint32Array.from(found.ends) };
    },
    idOf: (token) => withSpecials.token_to_id(token),
    prompt: (text) => promptOf(text, withSpecials, described.added_tokens),
  };
}

/** Takes all steps, with turns of the event loop between. */
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

/** A vocabulary that is a list counts its ids. */
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
      // It keeps words to know their pieces again, and no text may outlive its request.
      tokenizer.model?.clear_cache?.();
    }
  };
}

/**
 * What `do_lower_case` of sentence-transformers puts before BERT's normaliser is a part of that: for no code point does it matter
 * that it comes first (`tokenizers` 0.23.3).
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

/** What the tokenizer's own template puts around a text. */
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
