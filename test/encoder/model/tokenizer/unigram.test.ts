/** The Unigram tokenizer: the best pieces by definition, the texts that show its rules, and where tokens lie. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { documentTokens } from '../../../../src/encoder/model/row-spans.ts';
import type { Tokenizer } from '../../../../src/encoder/model/tokenizer/tokenizer.ts';
import { specials, unigramJson, unigramTokenizer, unknown } from '../../../support/encoder/unigram.ts';
import { calmestOf } from '../../../support/turns.ts';

const never = new AbortController().signal;

/** The definition, over all beginnings of the last piece. `pieces` without special ones; the least score is theirs or 0. */
function byDefinition(pieces: Readonly<Record<string, number>>, text: string): string[] {
  const unknownScore = Math.min(0, ...Object.values(pieces)) - 10;
  const longest = Math.max(...Object.keys(pieces).map((piece) => piece.length));
  const found: string[] = [];
  for (const written of text.split(' ').filter((each) => each !== '')) {
    const word = Array.from(`▁${written}`);
    const best = [{ sum: 0, start: 0, piece: '' }];
    for (let end = 1; end <= word.length; end++) {
      let [sum, from, last] = [-Infinity, 0, ''];
      for (let start = Math.max(0, end - longest); start < end; start++) {
        const piece = word.slice(start, end).join('');
        const score = Object.hasOwn(pieces, piece)
          ? pieces[piece]!
          : start === end - 1
            ? unknownScore
            : -Infinity;
        const candidate = best[start]!.sum + score;
        if (candidate > sum)
          [sum, from, last] = [candidate, start, Object.hasOwn(pieces, piece) ? piece : unknown];
      }
      best.push({ sum, start: from, piece: last });
    }
    const cut: string[] = [];
    for (let end = word.length; end > 0; end = best[end]!.start) {
      if (best[end]!.piece !== unknown || cut[0] !== unknown) cut.unshift(best[end]!.piece);
    }
    found.push(...cut);
  }
  return found;
}

function piecesBy(pieces: Readonly<Record<string, number>>): (ids: Iterable<number>) => string[] {
  const all = [...specials, ...Object.keys(pieces)];
  return (ids) => Array.from(ids, (id) => all[id] ?? `none: ${id}`);
}

const letter = fc.constantFrom('a', 'b', 'c', '▁', '😀', 'é');
const piece = fc
  .tuple(fc.boolean(), fc.array(letter, { minLength: 1, maxLength: 4 }))
  .map(([isFirst, letters]) => (isFirst ? '▁' : '') + letters.filter((each) => each !== '▁').join(''))
  .filter((text) => text !== '');
/** Few different scores: most words have several cuts with the same sum. */
const exactScore = fc.integer({ min: -12, max: -1 }).map((quarters) => quarters / 4);
const anyScore = fc.double({ min: -9, max: -0.1, noNaN: true });
const vocabularies = fc
  .constantFrom(exactScore, anyScore)
  .chain((score) => fc.dictionary(piece, score, { minKeys: 1, maxKeys: 30, noNullPrototype: true }));
const written = fc.string({ unit: fc.constantFrom('a', 'b', 'c', ' ', '😀', 'é', 'x', '😁'), maxLength: 40 });

describe('the pieces of a text', () => {
  it('are those of the definition, with any vocabulary', () => {
    fc.assert(
      fc.property(vocabularies, fc.array(written, { maxLength: 5 }), (pieces, texts) => {
        const tokenizer = unigramTokenizer(unigramJson({ pieces }));
        const named = piecesBy(pieces);
        // Twice, because some of the first time is remembered.
        for (const text of [...texts, ...texts]) {
          expect(named(tokenizer.encode(text))).toEqual(byDefinition(pieces, text));
        }
      }),
      { numRuns: 500 },
    );
  });

  it('are those of the definition in words of thousands of characters', async () => {
    await fc.assert(
      fc.asyncProperty(
        vocabularies,
        fc.array(written, { minLength: 1, maxLength: 30 }),
        async (pieces, parts) => {
          const tokenizer = unigramTokenizer(unigramJson({ pieces }));
          const word = parts.join('').replaceAll(' ', '');
          const text = `a ${word.repeat(Math.ceil(3000 / Math.max(1, word.length)))} b`;
          expect(piecesBy(pieces)(await tokenizer.encodeInSlices(text, never))).toEqual(
            byDefinition(pieces, text),
          );
        },
      ),
      { numRuns: 10 },
    );
  });
});

const letters = 'abdehnqrstuvxyAGkVệếéểị가각ガカ12⁄<>()~～ـشَُّ\u0301\u0308\u0316،.,';
const pieces: Readonly<Record<string, number>> = {
  ...Object.fromEntries(Array.from(new Set(letters), (each) => [each, -9])),
  '▁': -4,
  '▁a': -5,
  '▁b': -5,
  '▁query': -6,
  Việt: -8,
  A: -1,
  AA: -2,
  '<': -9,
  s: -9,
};
const table = {
  '\n': ' ',
  '\t': ' ',
  '\u3000': ' ',
  '\u00ad': '',
  '①': '1',
  '½': '1⁄2',
  ｶ: 'カ',
  ｶﾞ: 'ガ',
  '¨': ' \u0308',
};
const tokenizer = unigramTokenizer(unigramJson({ pieces, replacements: table }));
const named = piecesBy(pieces);
const shown = (text: string): string[] => named(tokenizer.encode(text));

describe('the rules', () => {
  it.each<[string, string, string[]]>([
    ['a text of no words', ' \n\u00ad ', []],
    ['no mark of a word at the end', 'a b ', ['▁a', '▁b']],
    ['several spaces are one', ' a \n\u3000b', ['▁a', '▁b']],
    ['white space that the table does not know', 'a\u0085b', ['▁a', '▁b']],
    ['a mark of a word that is written out', 'a▁b▁▁b', ['▁a', '▁b', '▁', '▁b']],
    ['a mark at the end', 'a▁', ['▁a']],
    ['unknown characters that follow one another', 'a☂☃b☂', ['▁a', unknown, 'b', unknown]],
    ['unknown characters behind the mark of a word', '☂☃ ☂', ['▁', unknown, '▁', unknown]],
    ['a special token is text', 'a<s>', ['▁a', '<', 's', '>']],
    ['the last piece is the longest where sums are equal', 'bAAA', ['▁b', 'A', 'AA']],
    ['what the table leaves out', 'a\u00adb', ['▁a', 'b']],
    ['the longest text of the table', 'aｶﾞｶ', ['▁a', 'ガ', 'カ']],
    ['a mark behind a character of the table', 'a①\u0301', ['▁a', '1', '\u0301']],
    ['a space that the table puts in', 'a¨b', ['▁a', '▁', '\u0308', 'b']],
    ['a full-width tilde, which the table does not know', 'a～~', ['▁a', '～', '~']],
    ['Vietnamese, decomposed', 'aVie\u0323\u0302t', ['▁a', 'Việt']],
    ['Vietnamese, half composed', 'aViê\u0323t', ['▁a', 'Việt']],
    ['Korean, decomposed', 'a\u1100\u1161\u11a8\u1100\u1161', ['▁a', '각', '가']],
    ['a mark that composes over another', 'ae\u0316\u0301', ['▁a', 'é', '\u0316']],
    [
      'Arabic marks in the order in which they are written',
      'aش\u0651\u064e',
      ['▁a', 'ش', '\u0651', '\u064e'],
    ],
    ['the other order', 'aش\u064e\u0651', ['▁a', 'ش', '\u064e', '\u0651']],
  ])('%s', (_name, text, expected) => {
    expect(shown(text)).toEqual(expected);
  });

  it('frame texts as the template says, and know the tokens of prompts', () => {
    expect([tokenizer.head, tokenizer.tail, tokenizer.unknownId]).toEqual([[0], [2], 3]);
    expect(tokenizer.vocabularySize).toBe(specials.length + Object.keys(pieces).length + 1);
    expect(tokenizer.idOf('<pad>')).toBe(1);
    expect(named([tokenizer.idOf('▁query')!])).toEqual(['▁query']);
    expect(tokenizer.idOf('▁nothing')).toBeUndefined();
    expect(tokenizer.idOf(' query')).toBeUndefined();
    const prompt = tokenizer.prompt('query</s>a ');
    expect(named(prompt.ids)).toEqual(['▁query', '</s>', '▁a']);
    expect(prompt.lead).toBe(' ');
  });

  it('decomposed texts have the ids of composed ones', () => {
    const known = fc.string({ unit: fc.constantFrom(...Array.from(letters), ' '), maxLength: 40 });
    fc.assert(
      fc.property(fc.oneof(known, fc.string({ unit: 'grapheme' })), (text) => {
        expect(shown(text.normalize('NFD'))).toEqual(shown(text.normalize('NFC')));
      }),
    );
  });

  it('other Unigram tokenizers are those of the library, which does not say where tokens lie', async () => {
    const json = unigramJson({ pieces });
    const model = json['model'] as Record<string, unknown>;
    const others = [{ normalizer: null }, { model: { ...model, byte_fallback: true } }];
    for (const changes of others) {
      const other = unigramTokenizer({ ...json, ...changes });
      expect(named(other.encode('a b'))).toEqual(['▁a', '▁b']);
      expect(await other.locateInSlices('a b', never)).toBeUndefined();
    }
  });

  it('spaces are pieces where the file does not join them', () => {
    const metaspace = { type: 'Metaspace', replacement: '▁', add_prefix_space: true };
    const json = { ...unigramJson({ pieces }), pre_tokenizer: metaspace };
    expect(named(unigramTokenizer(json).encode('  a  b '))).toEqual(['▁', '▁a', '▁', '▁b']);
    const charsmap = (json as Record<string, unknown>)['normalizer'];
    const joined = { type: 'Replace', pattern: { Regex: ' {2,}' }, content: ' ' };
    const normalizer = { type: 'Sequence', normalizers: [charsmap, joined] };
    expect(named(unigramTokenizer({ ...json, normalizer }).encode(' a  b '))).toEqual(['▁a', '▁b']);
  });

  it.each<[string, RegExp, (json: Record<string, unknown>) => void]>([
    [
      'a piece without a score',
      /no piece with a score/,
      (json) => (json['model'] as { vocab: unknown[] }).vocab.push(['x']),
    ],
    [
      'an unknown piece that is not there',
      /not in the vocabulary/,
      (json) => Object.assign(json['model'] as object, { unk_id: 900 }),
    ],
    [
      'a table that is cut',
      /precompiled_charsmap is damaged/,
      (json) => {
        const normalizer = json['normalizer'] as { precompiled_charsmap: string };
        normalizer.precompiled_charsmap = normalizer.precompiled_charsmap.slice(0, 400);
      },
    ],
  ])('%s is refused', (_name, message, damage) => {
    const json = unigramJson({ pieces, replacements: table });
    damage(json);
    expect(() => unigramTokenizer(json)).toThrow(message);
  });
});

async function slices(of: Tokenizer, text: string): Promise<string[]> {
  const { starts, ends } = (await of.locateInSlices(text, never))!;
  return Array.from(starts, (start, token) => text.slice(start, ends[token]));
}

describe('the places of tokens', () => {
  it.each<[string, string, string[]]>([
    ['the mark of a word is none of its place', 'a  b', ['a', 'b']],
    ['a lone mark has no place', 'a ☂', ['a', '', '☂']],
    ['a character that becomes several pieces', 'a½b', ['a', '½', '½', '½', 'b']],
    ['several that become one', 'aVie\u0323\u0302t', ['a', 'Vie\u0323\u0302t']],
    ['several of the table that become one', 'bｶﾞ', ['b', 'ｶﾞ']],
    ['a mark that composes over another', 'ae\u0316\u0301', ['a', 'e\u0316\u0301', '\u0316']],
    ['unknown characters', 'a😀😁b', ['a', '😀😁', 'b']],
    ['what is left out', 'a\u00ad\u00adb', ['a', 'b']],
  ])('%s', async (_name, text, expected) => {
    expect(await slices(tokenizer, text)).toEqual(expected);
  });

  it('any text: the ids of the tokenizer, in ascending order', async () => {
    const text = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 60 }),
      fc.string({ unit: 'binary', maxLength: 60 }),
      fc.string({
        unit: fc.constantFrom(...Array.from(letters), ' ', '½', '①', '▁', '\n', '☂', '😀'),
        maxLength: 60,
      }),
    );
    await fc.assert(
      fc.asyncProperty(text, async (given) => {
        const places = (await tokenizer.locateInSlices(given, never))!;
        expect(places.ids).toEqual(tokenizer.encode(given));
        let before = 0;
        for (const [token, start] of places.starts.entries()) {
          expect(start).toBeGreaterThanOrEqual(before);
          expect(places.ends[token]!).toBeGreaterThanOrEqual(start);
          expect(places.ends[token]!).toBeLessThanOrEqual(given.length);
          if (named([places.ids[token]!])[0] !== '▁') expect(places.ends[token]!).toBeGreaterThan(start);
          before = start;
        }
      }),
      { numRuns: 1000 },
    );
  });

  it('are code points in the tokens of a document, behind its prompt', async () => {
    const model = { tokenizer, rules: { documentLead: ' ' } };
    const { places } = await documentTokens(model, '😀 b½', never);
    expect([...places!.starts]).toEqual([0, 0, 2, 3, 3, 3]);
    expect([...places!.ends]).toEqual([0, 1, 3, 4, 4, 4]);
  });

  it('passages end between any pieces of scripts without spaces, and of long words', async () => {
    const starts = async (text: string): Promise<number[]> => [
      ...(await tokenizer.locateInSlices(text, never))!.wordStarts,
    ];
    expect(await starts('ab b')).toEqual([1, 0, 1]);
    expect(await starts('aガカ')).toEqual([1, 1, 1]);
    expect(new Set(await starts('ab'.repeat(60)))).toEqual(new Set([1]));
  });
});

const longestTexts = Object.entries({
  words: 'a b, query ½ ',
  'one word': 'ab',
  unknown: '☂',
  marks: 'e\u0301\u0316\u0300',
  'marks that compose with nothing': '\u0316\u0301',
  jamo: '\u1100\u1161\u11a8',
  spaces: ' ',
}).map(([name, part]) => [name, part.repeat((100 << 10) / Buffer.byteLength(part))] as const);

describe('a text of 100 KiB', () => {
  it.each(longestTexts)('leaves the event loop its turns: %s', async (_name, text) => {
    await tokenizer.locateInSlices(text, never);
    const { longestMs } = await calmestOf(5, () => tokenizer.locateInSlices(text, never));
    // Turns end after 2 ms of work. The rest is room for the garbage collector and a slow machine.
    expect(longestMs).toBeLessThan(25);
  });

  it('is left when its caller has gone', async () => {
    const controller = new AbortController();
    const work = tokenizer.encodeInSlices('ab'.repeat(1_000_000), controller.signal);
    controller.abort(new Error('gone'));
    await expect(work).rejects.toThrow('gone');
  });
});
