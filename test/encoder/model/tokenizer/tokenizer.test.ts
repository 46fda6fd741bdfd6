import * as fc from 'fast-check';
import * as library from '@huggingface/tokenizers';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { openModelDirectory } from '../../../../src/encoder/model/model-directory.ts';
import { createTokenizer, type Tokenizer } from '../../../../src/encoder/model/tokenizer/tokenizer.ts';
import { defaultModel, tinyModel } from '../../../support/encoder/models.ts';

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
    strip: false,
  });
}

const tokenizer = await open(defaultModel);
const never = new AbortController().signal;
const idsOf = (text: string): number[] => [...tokenizer.encode(text)];

/** Marks of two classes, the lower class after the higher one. So canonical order moves each of them past all others. */
function marksOutOfOrder(count: number, [higher, lower]: [string, string] = ['\u0315', '\u0300']): string {
  return higher.repeat(count / 2) + lower.repeat(count / 2);
}

/** Processor time of one run. It is measured over so many runs that the ticks of the clock do not matter. */
function processorMs(work: () => unknown): number {
  const spentMs = (since?: NodeJS.CpuUsage): number => {
    const { user, system } = process.threadCpuUsage(since);
    return (user + system) / 1000;
  };
  const once = (): number => {
    const before = process.threadCpuUsage();
    let runs = 0;
    do {
      work();
      runs++;
    } while (spentMs(before) < 20);
    return spentMs(before) / runs;
  };
  return Math.min(once(), once());
}

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

  it('gives the same ids wherever a long text is cut into slices', async () => {
    const pieces = fc.oneof(
      fc.constantFrom('.', ',', '\n', '-', 'word', 'Ünïcode', '東京', '\u0301', '\u200d', '😀', 'Σ'),
      fc.string({ maxLength: 40 }),
    );
    const parts = fc
      .array(pieces, { minLength: 1, maxLength: 40 })
      .map((some) => some.join('').slice(0, 4000));
    await fc.assert(
      fc.asyncProperty(fc.array(parts, { minLength: 20, maxLength: 20 }), async (all) => {
        const texts = Array.from({ length: 5 }, () => all).flat();
        // Each part is short enough for a slice.
        const expected = texts.flatMap((part) => idsOf(`${part} `));
        expect([...(await tokenizer.encodeInSlices(`${texts.join(' ')} `, never))]).toEqual(expected);
      }),
      { numRuns: 20 },
    );
  });

  it.each<[string, (characters: number) => string]>([
    ['marks out of order', (count) => marksOutOfOrder(count)],
    ['spacing marks out of order', (count) => marksOutOfOrder(count, ['\u302e', '\u{1d165}'])],
    ['marks between control characters', (count) => marksOutOfOrder(count, ['\u0315\u200b', '\u0300\0'])],
    ['marks that decompose into marks', (count) => marksOutOfOrder(count, ['\u0315', '\u0344'])],
    ['one word', (count) => 'a'.repeat(count)],
    ['Hangul jamo', (count) => '\u1112\u1161\u11ab'.repeat(count / 3)],
    ['emoji sequences', (count) => '👩\u200d'.repeat(count / 3)],
    ['bidirectional marks', (count) => '\u200f\u202a'.repeat(count / 2)],
    ['spaces', (count) => ' '.repeat(count)],
    ['special strings', (count) => '[MASK]'.repeat(count / 6)],
  ])('takes %s in time linear in the bytes, as it does ordinary text', (_, textOf) => {
    const text = textOf(32_000);
    const ordinary = 'Съешь ещё этих мягких булок. '.repeat(Buffer.byteLength(text) / 51);
    const time = processorMs(() => tokenizer.encode(text));
    expect(time).toBeLessThan(8 * processorMs(() => tokenizer.encode(textOf(8000))));
    expect(time).toBeLessThan(4 * processorMs(() => tokenizer.encode(ordinary)));
  });

  it('stops between slices when the caller has gone', async () => {
    const controller = new AbortController();
    const work = tokenizer.encodeInSlices('word '.repeat(1_000_000), controller.signal);
    controller.abort(new Error('gone'));
    await expect(work).rejects.toThrow('gone');
  });
});

describe('the tokenizer library', () => {
  const words = ['low', 'lower', 'newest', 'wide', '\u0301', 'é', '東京', '\n', '  ', '!'];
  /** As models of the ModernBERT family have it. */
  const description = {
    added_tokens: [],
    normalizer: { type: 'NFC' },
    pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true },
    post_processor: null,
    decoder: null,
    model: {
      type: 'BPE',
      unk_token: 'l',
      vocab: Object.fromEntries(
        ['l', 'o', 'w', 'e', 'r', 'Ġ', 'lo', 'low', 'Ġlow'].map((piece, i) => [piece, i]),
      ),
      merges: ['l o', 'lo w', 'Ġ low'],
    },
  };
  const byteLevel = createTokenizer({
    tokenizer: description,
    tokenizerConfig: {},
    specialStrings: [],
    lowercase: false,
    strip: false,
  });

  it('gives the same ids in slices as at once where a text has spaces', () => {
    const whole = new library.Tokenizer(description, {});
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...words), { minLength: 1, maxLength: 60 }), (parts) => {
        // A slice ends before a space that does not follow another or a line's end.
        const text = `low ${parts.join('')}`.repeat(40);
        expect([...byteLevel.encode(text)]).toEqual(whole.encode(text).ids);
      }),
      { numRuns: 50 },
    );
  });

  it('keeps no word of a text', async () => {
    const { BPE } = library as unknown as { BPE: { prototype: { bpe: (word: string) => string[] } } };
    const cut = vi.spyOn(BPE.prototype, 'bpe');
    onTestFinished(() => cut.mockRestore());
    byteLevel.encode('lower newest');
    const controller = new AbortController();
    const aborted = byteLevel.encodeInSlices('wide '.repeat(20_000), controller.signal);
    controller.abort(new Error('gone'));
    await expect(aborted).rejects.toThrow('gone');
    const kept = cut.mock.contexts.map(
      (model) => (model as { cache: { cache: Map<string, unknown> } }).cache,
    );
    expect(kept.length).toBeGreaterThan(100);
    expect(new Set(kept.map(({ cache }) => cache.size))).toEqual(new Set([0]));
  });

  it('is not given a long run of marks at once', () => {
    expect(processorMs(() => byteLevel.encode(marksOutOfOrder(40_000)))).toBeLessThan(
      8 * processorMs(() => byteLevel.encode(marksOutOfOrder(10_000))),
    );
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
      strip: false,
    });
    const ids = [...unigram.encode('a <mask> a')];
    expect(ids).not.toContain(3);
    expect(ids).toContain(5);
  });
});
