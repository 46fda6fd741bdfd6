/**
 * The only importer of the tokenizer library.
 *
 * BERT tokenizers get our own normaliser and word splitter, which agree with Hugging Face's on every code point (`bert-text.ts`),
 * and our own WordPiece (`word-pieces.ts`). The library takes ten times as long, because it passes strings from step to step.
 *
 * BERT tokenizers give the same ids in steps as in one go. For other tokenizers the library gets slices of the text, because it
 * takes time quadratic in the length of a run of marks. Where a text has no space in a thousand characters, a slice ends within a
 * word.
 */
import { Tokenizer as LibraryTokenizer } from '@huggingface/tokenizers';
import { bertNormalizer, bertWords, forEachBertWord, type BertNormalizer } from './bert-text.ts';
import { createPieceLengths, locateBertTokens } from './token-places.ts';
import type { DescribedTokenizer, Normalizer, Steps, TokenizerParts } from './tokenizer-parts.ts';
import type { TokenizerOptions } from './tokenizer.ts';
import { createWordPieces, type WordPieces } from './word-pieces.ts';

/** Characters of a step, which takes about 1 ms. */
const stepCharacters = 4096;
/** The library takes some 10 us per character. A slice ends before a space that follows another character, if there is one. */
const librarySlices = /[^]{1,1024}$|[^]{1,1024}(?<=\S)(?= )|[^]{1,1024}/gu;

type Pipeline = Pick<TokenizerParts, 'steps' | 'locate' | 'lowercases'>;

/** `isSpecial`: those of the added tokens that are never found in a text. */
export function libraryParts(
  options: TokenizerOptions,
  described: DescribedTokenizer,
  isSpecial: (token: DescribedTokenizer['added_tokens'][number]) => boolean,
): TokenizerParts {
  const withSpecials = new LibraryTokenizer(options.tokenizer, options.tokenizerConfig);
  const added = described.added_tokens.filter((token) => !isSpecial(token));
  const plain = new LibraryTokenizer({ ...options.tokenizer, added_tokens: added }, options.tokenizerConfig);
  return {
    ...specialFrame(withSpecials),
    vocabularySize: withSpecials.get_vocab().size,
    unknownId: plain.model?.unk_token_id,
    ...pipelineOf(described, plain, withSpecials, added.length > 0),
    isExact: false,
    forbiddenIds: described.added_tokens.filter(isSpecial).map(({ id }) => id),
    idOf: (token) => withSpecials.token_to_id(token),
    idsWithSpecials: (text) => withSpecials.encode(text, { add_special_tokens: false }).ids,
  };
}

/** BERT's steps are our own. For other tokenizers, and for words that are added to the vocabulary, the library works. */
function pipelineOf(
  { normalizer: described, pre_tokenizer: preTokenizer, model }: DescribedTokenizer,
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
