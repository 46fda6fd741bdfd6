/** Makes tokenizer.json of small Unigram tokenizers, in the form in which XLM-R has it. */
import { createTokenizer, type Tokenizer } from '../../../src/encoder/model/tokenizer/tokenizer.ts';

/** XLM-R's first pieces. */
export const specials = ['<s>', '<pad>', '</s>', '<unk>'] as const;
export const unknown = '<unk>';

const template = (id: string): object => ({ SpecialToken: { id, type_id: 0 } });

export interface UnigramOptions {
  /** Piece -> score. */
  readonly pieces: Readonly<Record<string, number>>;
  /** Text -> replacement. */
  readonly replacements?: Readonly<Record<string, string>>;
}

export function unigramJson({ pieces, replacements = {} }: UnigramOptions): Record<string, unknown> {
  const vocab = [...specials.map((content) => [content, 0]), ...Object.entries(pieces), ['<mask>', 0]];
  const added = [...specials, '<mask>'].map((content) => ({
    id: vocab.findIndex(([piece]) => piece === content),
    content,
    special: true,
    normalized: false,
  }));
  return {
    version: '1.0',
    added_tokens: added,
    normalizer: { type: 'Precompiled', precompiled_charsmap: charsmapOf(replacements) },
    pre_tokenizer: {
      type: 'Sequence',
      pretokenizers: [
        { type: 'WhitespaceSplit' },
        { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true },
      ],
    },
    post_processor: {
      type: 'TemplateProcessing',
      single: [template('<s>'), { Sequence: { id: 'A', type_id: 0 } }, template('</s>')],
      special_tokens: {
        '<s>': { id: '<s>', ids: [0], tokens: ['<s>'] },
        '</s>': { id: '</s>', ids: [2], tokens: ['</s>'] },
      },
    },
    decoder: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true },
    model: { type: 'Unigram', unk_id: 3, vocab, byte_fallback: false },
  };
}

export function unigramTokenizer(json: Record<string, unknown>): Tokenizer {
  return createTokenizer({
    tokenizer: json,
    tokenizerConfig: {},
    specialStrings: [],
    lowercase: false,
    strip: false,
  });
}

/**
 * The table in SentencePiece's form, as `charsmap.ts` describes it. The children of a node have a block of 256 units to themselves,
 * which is simple, and longer than need be.
 */
export function charsmapOf(replacements: Readonly<Record<string, string>>): string {
  const units: number[] = [0];
  const texts: Buffer[] = [];
  let bytes = 0;
  const entries = Object.entries(replacements).map(([text, replacement]) => {
    const place = bytes;
    texts.push(Buffer.from(`${replacement}\0`));
    bytes += texts.at(-1)!.length;
    return { text: Buffer.from(text), place };
  });
  const place = (node: number, depth: number, below: typeof entries): void => {
    const block = 256 * Math.ceil(units.length / 256);
    while (units.length < block + 256) units.push(0);
    const end = below.find(({ text }) => text.length === depth);
    units[node]! |= ((node ^ block) << 10) | (end === undefined ? 0 : 1 << 8);
    if (end !== undefined) units[block] = (0x8000_0000 | end.place) >>> 0;
    const further = Map.groupBy(
      below.filter(({ text }) => text.length > depth),
      ({ text }) => text[depth]!,
    );
    for (const [byte, some] of further) {
      units[block ^ byte] = byte;
      place(block ^ byte, depth + 1, some);
    }
  };
  place(0, 0, entries);
  const array = Buffer.from(Uint32Array.from(units).buffer);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(array.length);
  return Buffer.concat([length, array, ...texts]).toString('base64');
}
