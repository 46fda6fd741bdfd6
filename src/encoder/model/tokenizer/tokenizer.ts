/**
 * Tokenizers as the encoder uses them. Each kind has its parts: those of the library and of BERT (`library-tokenizer.ts`), and those
 * of XLM-R and its like (`unigram.ts`).
 *
 * Special strings in a text are ordinary text: `[MASK]`, `</s>` or a prefix that a user writes is split like any other word. Special
 * tokens come from the model's rules alone.
 *
 * A text is tokenised in steps. Between them the event loop has turns, so that 100 KiB of text do not delay health checks and
 * queries. Time is linear in the bytes of a text, whatever it holds.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { plainAscii } from './bert-text.ts';
import { libraryParts } from './library-tokenizer.ts';
import { withoutOuterSpace } from './outer-space.ts';
import type { FoundPlaces, TokenPlaces } from './token-places.ts';
import {
  tokenizerSchema,
  type DescribedTokenizer,
  type Steps,
  type TokenizerParts,
} from './tokenizer-parts.ts';
import { packUnigram, unigramParts } from './unigram.ts';

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

/** The time between two turns of the event loop. */
const turnMs = 2;

/** The same options with a large vocabulary in shared memory: threads that build the tokenizer need it once. */
export function packedOptions(options: TokenizerOptions): TokenizerOptions {
  return { ...options, tokenizer: packUnigram(options.tokenizer, specialsBy(options)) };
}

export function createTokenizer(options: TokenizerOptions): Tokenizer {
  const described = tokenizerSchema.parse(options.tokenizer);
  const isSpecial = specialsBy(options);
  const parts = unigramParts(described, isSpecial) ?? libraryParts(options, described, isSpecial);
  return tokenizerOf(parts, options, described.added_tokens);
}

/** Whether an added token is never found in a text. */
function specialsBy({ specialStrings }: TokenizerOptions) {
  return (token: DescribedTokenizer['added_tokens'][number]): boolean =>
    token.special || specialStrings.includes(token.content);
}

function tokenizerOf(
  parts: TokenizerParts,
  { strip, lowercase }: Pick<TokenizerOptions, 'strip' | 'lowercase'>,
  added: DescribedTokenizer['added_tokens'],
): Tokenizer {
  const { steps, locate, unknownId } = parts;
  const lowercaseFirst = lowercase && !parts.lowercases;
  const finish = finisher(parts.forbiddenIds, unknownId);
  const prepared = (text: string): string => {
    const wellFormed = text.toWellFormed();
    const stripped = strip ? withoutOuterSpace(wellFormed) : wellFormed;
    return lowercaseFirst ? stripped.toLowerCase() : stripped;
  };

  return {
    head: parts.head,
    tail: parts.tail,
    vocabularySize: parts.vocabularySize,
    unknownId,
    encode: (text) => {
      const ids: number[] = [];
      for (const _ of steps(prepared(text), ids)) continue;
      return finish(ids);
    },
    encodeInSlices: async (text, signal) => {
      const ids: number[] = [];
      await inSlices(steps(prepared(text), ids), signal);
      return finish(ids);
    },
    locateInSlices: async (text, signal) => {
      if (locate === undefined || lowercaseFirst) return undefined;
      const given = prepared(text);
      const found: FoundPlaces = { ids: [], starts: [], ends: [], wordStarts: [] };
      await inSlices(locate(given, found), signal);
      if (!parts.isExact && !plainAscii.test(given)) {
        const ids: number[] = [];
        await inSlices(steps(given, ids), signal);
        if (!isSame(found.ids, ids)) return undefined;
      }
      // A stripped text begins with a character that is none of those before it.
      const lead = strip ? text.toWellFormed().indexOf(given) : 0;
      return {
        ids: finish(found.ids),
        starts: shifted(found.starts, lead),
        ends: shifted(found.ends, lead),
        wordStarts: new Uint8Array(found.wordStarts),
      };
    },
    idOf: parts.idOf,
    prompt: (text) => promptOf(text, parts, added),
  };
}

/**
 * Some vocabularies (Unigram) hold special tokens as ordinary pieces. The function that this returns makes unknown tokens of
 * them.
 */
function finisher(
  forbiddenIds: readonly number[],
  unknownId: number | undefined,
): (ids: readonly number[]) => Int32Array {
  const isForbidden = new Uint8Array(Math.max(0, ...forbiddenIds.map((id) => id + 1)));
  for (const id of forbiddenIds) isForbidden[id] = 1;
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

function shifted(places: readonly number[], by: number): Uint32Array {
  const result = new Uint32Array(places);
  if (by > 0) for (let i = 0; i < result.length; i++) result[i]! += by;
  return result;
}

function isSame(some: ArrayLike<number>, others: readonly number[]): boolean {
  return some.length === others.length && others.every((id, place) => some[place] === id);
}

function promptOf(
  text: string,
  { idsWithSpecials }: TokenizerParts,
  added: readonly { readonly content: string }[],
): Prompt {
  // An added token may end with the space, as PyLate's "[Q] " does.
  const holdsSpace = added.some(({ content }) => content !== content.trimEnd() && text.endsWith(content));
  const words = holdsSpace ? text : text.trimEnd();
  return { ids: idsWithSpecials(words), lead: text.slice(words.length) };
}
