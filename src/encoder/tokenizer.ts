/**
 * The only importer of the tokenizer library. Texts are ordinary text throughout: `[MASK]`, `[CLS]`, a prefix or any
 * other special string that a user writes is split like every other word, because the library is built
 * without added tokens of that kind. Special tokens come from the model's rules, never from the text.
 *
 * BERT tokenizers get a normaliser and a word splitter that agree with Hugging Face's on every code point
 * (`bert-text.ts`), and a WordPiece of our own (`word-pieces.ts`): the library spends ten times as long on passing
 * strings from step to step.
 *
 * A long text is tokenised in slices with a turn of the event loop between them, so that 100 KiB of text do not
 * hold up the thread that answers health checks and queries. Slices end at ASCII white space or
 * punctuation, where BERT tokenizers cannot join anything; other tokenizers get the whole text.
 */
import { Tokenizer as LibraryTokenizer } from '@huggingface/tokenizers';
import { setImmediate as turn } from 'node:timers/promises';
import { z } from 'zod';
import { assertInvariant } from '../errors.ts';
import { bertNormalizer, bertWords, forEachBertWord } from './bert-text.ts';
import { createWordPieces } from './word-pieces.ts';

export interface Tokenizer {
  /** Ids that the tokenizer puts before and after a text (`CLS`, `SEP`). */
  readonly head: readonly number[];
  readonly tail: readonly number[];
  readonly vocabularySize: number;
  /** Token ids of a text, special tokens excluded. */
  encode(text: string): Int32Array;
  /** The same, in slices; rejects with the signal's reason once it is aborted. */
  encodeInSlices(text: string, signal: AbortSignal): Promise<Int32Array>;
  /** Id of a vocabulary entry. */
  idOf(token: string): number | undefined;
}

export interface TokenizerOptions {
  /** Parsed tokenizer.json and tokenizer_config.json. */
  readonly tokenizer: Readonly<Record<string, unknown>>;
  readonly tokenizerConfig: Readonly<Record<string, unknown>>;
  /** Strings that are special to the model though the tokenizer does not say so (prefixes). */
  readonly specialStrings: readonly string[];
  /** Lowercase texts first (exports whose tokenizer lacks that step). */
  readonly lowercase: boolean;
}

const tokenizerSchema = z.looseObject({
  added_tokens: z
    .array(z.looseObject({ id: z.number().int(), content: z.string(), special: z.boolean().default(false) }))
    .default([]),
  normalizer: z
    .looseObject({
      type: z.string(),
      clean_text: z.boolean().default(true),
      handle_chinese_chars: z.boolean().default(true),
      strip_accents: z.boolean().nullish(),
      lowercase: z.boolean().default(true),
    })
    .nullish(),
  pre_tokenizer: z.looseObject({ type: z.string() }).nullish(),
  model: z.looseObject({
    type: z.string().nullish(),
    continuing_subword_prefix: z.string().default('##'),
    max_input_chars_per_word: z.number().default(100),
  }),
});

/** Characters of a slice: about 2 ms of work. */
const sliceCharacters = 4096;
const sliceEnd = /[\t\n\r !-/:-@[-`{-~]/;

export function createTokenizer(options: TokenizerOptions): Tokenizer {
  const described = tokenizerSchema.parse(options.tokenizer);
  const withSpecials = new LibraryTokenizer(options.tokenizer, options.tokenizerConfig);
  const { head, tail } = specialFrame(withSpecials);

  const isSpecial = (token: { content: string; special: boolean }): boolean =>
    token.special || options.specialStrings.includes(token.content);
  const added = described.added_tokens.filter((token) => !isSpecial(token));
  const plain = new LibraryTokenizer({ ...options.tokenizer, added_tokens: added }, options.tokenizerConfig);
  const { normalizer, pre_tokenizer: preTokenizer, model } = described;
  let idsOf = (text: string): readonly number[] => plain.encode(text, { add_special_tokens: false }).ids;
  const isBert = normalizer?.type === 'BertNormalizer' && preTokenizer?.type === 'BertPreTokenizer';
  if (isBert) {
    const normalize = bertNormalizer({
      cleanText: normalizer.clean_text,
      chineseCharacters: normalizer.handle_chinese_chars,
      stripAccents: normalizer.strip_accents ?? normalizer.lowercase,
      lowercase: normalizer.lowercase,
    });
    plain.normalizer = normalize;
    plain.pre_tokenizer = bertWords;
    const unknown = plain.model?.unk_token_id;
    if (model.type === 'WordPiece' && unknown !== undefined && added.length === 0) {
      const appendPieces = createWordPieces({
        vocabulary: plain.model.tokens_to_ids,
        continuationPrefix: model.continuing_subword_prefix,
        unknownId: unknown,
        charactersMax: model.max_input_chars_per_word,
      });
      idsOf = (text) => {
        const ids: number[] = [];
        const normal = normalize(text);
        forEachBertWord(normal, (from, to) => appendPieces(normal, from, to, ids));
        return ids;
      };
    }
  }

  const lowercaseFirst = options.lowercase && !(isBert && normalizer.lowercase);

  // Some vocabularies (Unigram) hold special tokens as ordinary pieces: those become unknown tokens.
  const unknownId = plain.model?.unk_token_id;
  const isForbidden = new Uint8Array(Math.max(0, ...described.added_tokens.map(({ id }) => id + 1)));
  for (const { id } of described.added_tokens.filter(isSpecial)) isForbidden[id] = 1;
  if (unknownId !== undefined) isForbidden[unknownId] = 0;

  const encode = (text: string): Int32Array => {
    const given = lowercaseFirst ? text.toLowerCase() : text;
    const result = new Int32Array(idsOf(given));
    for (let i = 0; i < result.length; i++) {
      if (isForbidden[result[i]!] === 1) result[i] = unknownId ?? 0;
    }
    return result;
  };

  return {
    head,
    tail,
    vocabularySize: withSpecials.get_vocab().size,
    encode: (text) => encode(text.toWellFormed()),
    encodeInSlices: async (text, signal) => {
      const wellFormed = text.toWellFormed();
      const slices = isBert && wellFormed.length > sliceCharacters ? textSlices(wellFormed) : [wellFormed];
      const parts: Int32Array[] = [];
      for (const slice of slices) {
        if (parts.length > 0) await turn();
        signal.throwIfAborted();
        parts.push(encode(slice));
      }
      return parts.length === 1 ? parts[0]! : concatenated(parts);
    },
    idOf: (token) => withSpecials.token_to_id(token),
  };
}

/** Cuts after `sliceCharacters`, at the next character that no BERT word crosses. */
function* textSlices(text: string): Generator<string, void, undefined> {
  let start = 0;
  while (text.length - start > sliceCharacters) {
    const rest = text.slice(start + sliceCharacters).search(sliceEnd);
    if (rest === -1) break;
    const end = start + sliceCharacters + rest;
    yield text.slice(start, end);
    start = end;
  }
  yield text.slice(start);
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

function concatenated(parts: readonly Int32Array[]): Int32Array {
  const result = new Int32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    result.set(part, offset);
    offset += part.length;
  }
  assertInvariant(offset === result.length, 'token parts do not add up');
  return result;
}
