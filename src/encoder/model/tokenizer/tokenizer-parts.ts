/** The parts that differ between kinds of tokenizers. `tokenizer.ts` puts a `Tokenizer` together from them. */
import { z } from 'zod';
import type { FoundPlaces } from './token-places.ts';

/** Tokenises a text in steps. It appends to `ids`, and yields where the event loop may have a turn. */
export type Steps = (text: string, ids: number[]) => Generator<void, void, undefined>;

export interface TokenizerParts {
  /** Ids before and after a text, by the tokenizer's template. */
  readonly head: readonly number[];
  readonly tail: readonly number[];
  readonly vocabularySize: number;
  readonly unknownId: number | undefined;
  /** Whether the normaliser lowercases. */
  readonly lowercases: boolean;
  readonly steps: Steps;
  /** Finds the places of tokens; absent where that cannot be done. */
  readonly locate?: (text: string, into: FoundPlaces) => ReturnType<Steps>;
  /** Whether `locate` gives the ids of `steps` for every text. Otherwise the two are compared. */
  readonly isExact: boolean;
  /** Ids that never come from a text. Unknown tokens stand for them. */
  readonly forbiddenIds: readonly number[];
  readonly idOf: (token: string) => number | undefined;
  /** Token ids of a text in which special tokens are special. */
  readonly idsWithSpecials: (text: string) => readonly number[];
}

/** A bound on ids, because tables are as long as the largest id. No vocabulary comes near it. */
export const tokenIdMax = 1 << 24;
const tokenId = z.number().int().min(0).max(tokenIdMax);

const normalizerSchema = z.looseObject({
  type: z.string(),
  clean_text: z.boolean().default(true),
  handle_chinese_chars: z.boolean().default(true),
  strip_accents: z.boolean().nullish(),
  lowercase: z.boolean().default(true),
});
export type Normalizer = z.output<typeof normalizerSchema>;

/** The keys of tokenizer.json that are read. */
export const tokenizerSchema = z.looseObject({
  added_tokens: z
    .array(z.looseObject({ id: tokenId, content: z.string(), special: z.boolean().default(false) }))
    .default([]),
  normalizer: normalizerSchema.extend({ normalizers: z.array(normalizerSchema).optional() }).nullish(),
  pre_tokenizer: z.looseObject({ type: z.string() }).nullish(),
  post_processor: z.unknown(),
  model: z.looseObject({
    type: z.string().nullish(),
    /** Null in tokenizers other than WordPiece. */
    continuing_subword_prefix: z.string().nullish(),
    max_input_chars_per_word: z.number().default(100),
    vocab: z.unknown().refine(hasUsableIds, `ids must be integers from 0 to ${tokenIdMax}`),
  }),
});

export type DescribedTokenizer = z.output<typeof tokenizerSchema>;

/** The ids of a vocabulary that is a list are its places. */
function hasUsableIds(vocabulary: unknown): boolean {
  if (Array.isArray(vocabulary)) return vocabulary.length <= tokenIdMax;
  if (typeof vocabulary !== 'object' || vocabulary === null) return true;
  return Object.values(vocabulary).every((id) => Number.isInteger(id) && id >= 0 && id <= tokenIdMax);
}
