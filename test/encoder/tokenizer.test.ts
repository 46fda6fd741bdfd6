import * as fc from 'fast-check';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { openModelDirectory } from '../../src/encoder/model-directory.ts';
import { createTokenizer, type Tokenizer } from '../../src/encoder/tokenizer.ts';
import { defaultModel, tinyModel } from './encoders.ts';

const expectations = JSON.parse(
  readFileSync(path.join(import.meta.dirname, 'tokenizer-expectations.json'), 'utf8'),
) as { blocks: [number, string][]; texts: [string, number[]][] };

async function open(directory: string, changes: Record<string, unknown> = {}): Promise<Tokenizer> {
  const model = await openModelDirectory(directory);
  return createTokenizer({
    tokenizer: { ...model.tokenizer, ...changes },
    tokenizerConfig: model.tokenizerConfig,
    specialStrings: ['[unused0]', '[unused1]'],
    lowercase: model.config.do_lower_case,
  });
}

const tokenizer = await open(defaultModel);
const never = new AbortController().signal;
const idsOf = (text: string): number[] => [...tokenizer.encode(text)];

describe('the default model’s tokenizer', () => {
  it('gives the ids of Hugging Face’s tokenizer for mixed text', () => {
    for (const [text, ids] of expectations.texts) expect(idsOf(text), JSON.stringify(text)).toEqual(ids);
  });

  it('gives the ids of Hugging Face’s tokenizer for every code point in use', () => {
    for (const [start, expected] of expectations.blocks) {
      const digest = createHash('sha256');
      for (let code = start; code < start + 4096; code++) {
        if (code >= 0xd800 && code < 0xe000) continue;
        digest.update(`${idsOf(`a${String.fromCodePoint(code)}b`).join(',')}\n`);
      }
      expect(digest.digest('hex').slice(0, 16), `code points from U+${start.toString(16)}`).toBe(expected);
    }
  });

  it('frames texts with CLS and SEP', () => {
    expect(tokenizer.head).toEqual([101]);
    expect(tokenizer.tail).toEqual([102]);
  });

  it('takes special tokens in a text for ordinary text', () => {
    const special = new Set([0, 101, 102, 103]);
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(
            fc.constantFrom('[MASK]', '[CLS]', '[SEP]', '[PAD]', '[UNK]', '[unused0]', '##s', '</s>'),
            fc.string(),
          ),
        ),
        (parts) => {
          for (const id of idsOf(parts.join(''))) expect(special).not.toContain(id);
        },
      ),
    );
  });

  it('takes control characters and lone surrogates, and treats the latter as replacement characters', () => {
    expect(idsOf('\0\x01\x7f\u200b')).toEqual([]);
    expect(idsOf('x\ud800y')).toEqual(idsOf('x\ufffdy'));
    fc.assert(
      fc.property(
        fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)) }),
        (text) => {
          expect(idsOf(text)).toEqual(idsOf(text.toWellFormed()));
        },
      ),
    );
  });

  it('gives the same ids in slices as at once', async () => {
    const pieces = fc.oneof(
      fc.constantFrom(' ', '.', ',', '\n', '-', 'word', 'Ünïcode', '東京', '\u0301', '😀', 'Σ'),
      fc.string({ maxLength: 40 }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(pieces, { minLength: 1, maxLength: 40 }), async (parts) => {
        const text = parts.join('').repeat(Math.ceil(12_000 / Math.max(1, parts.join('').length)));
        expect(await tokenizer.encodeInSlices(text, never)).toEqual(tokenizer.encode(text));
      }),
      { numRuns: 20 },
    );
  });

  it('stops between slices when the caller has gone', async () => {
    const controller = new AbortController();
    const work = tokenizer.encodeInSlices('word '.repeat(20_000), controller.signal);
    controller.abort(new Error('gone'));
    await expect(work).rejects.toThrow('gone');
  });
});

describe('other tokenizers', () => {
  it('never give a prefix for text that spells it', async () => {
    const tiny = await open(tinyModel);
    const prefix = tiny.idOf('[unused0]')!;
    expect(tiny.encode('[unused0] the query')).not.toContain(prefix);
  });

  it('turn a special piece of a Unigram vocabulary into an unknown token', async () => {
    const vocabulary = [
      ['<unk>', 0],
      ['<s>', 0],
      ['</s>', 0],
      ['<mask>', 0],
      ['▁', -1],
      ['a', -2],
      ['<', -3],
      ['s', -3],
      ['>', -3],
    ];
    const special = vocabulary
      .slice(0, 4)
      .map(([content], id) => ({ id, content, special: true, normalized: false }));
    const unigram = createTokenizer({
      tokenizer: {
        added_tokens: special,
        normalizer: null,
        pre_tokenizer: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always' },
        post_processor: null,
        decoder: null,
        model: { type: 'Unigram', unk_id: 0, vocab: vocabulary },
      },
      tokenizerConfig: { unk_token: '<unk>', eos_token: '</s>' },
      specialStrings: [],
      lowercase: false,
    });
    const ids = [...unigram.encode('a <mask> a')];
    expect(ids).not.toContain(3);
    expect(ids).toContain(5);
  });
});
