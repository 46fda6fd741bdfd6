/** Loose keys, and the terms of a record that words of a query find. */
import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { looseKey } from '../../../src/index/terms/loose-keys.ts';
import { matchedTexts, matchTerms, recordTerms, termsOfKeys } from '../../../src/index/terms/match-terms.ts';
import { metadataTerms, termBytes } from '../../../src/index/terms/metadata-terms.ts';
import { rounds } from '../../rounds.ts';
import { fieldOf, metadata, name, type Json } from '../../support/conditions.ts';

const cases = JSON.parse(readFileSync(new URL('loose-keys.json', import.meta.url), 'utf8')) as {
  readonly equal: readonly (readonly string[])[];
  readonly none: readonly string[];
};

function termsIn(terms: Uint8Array): Set<string> {
  expect(terms.length % termBytes).toBe(0);
  const each = Array.from({ length: terms.length / termBytes }, (_, at) =>
    Buffer.from(terms.subarray(at * termBytes, (at + 1) * termBytes)).toString('hex'),
  );
  expect(new Set(each).size).toBe(each.length);
  return new Set(each);
}

/** The terms of these texts in a field. */
function expected(texts: Readonly<Record<string, readonly string[]>>): Set<string> {
  const terms = Object.entries(texts).flatMap(([field, each]) =>
    each.map((text) => Buffer.from(termsOfKeys([looseKey(text) ?? ''], [field])).toString('hex')),
  );
  return new Set(terms);
}

describe('a loose key', () => {
  it.each(cases.equal.map((texts) => [texts]))('is one for %j', (texts) => {
    const [key] = texts.map(looseKey);
    expect(key).toBeDefined();
    expect(texts.map(looseKey)).toEqual(texts.map(() => key));
  });

  it('differs for texts that do not match', () => {
    const keys = cases.equal.map(([text = '']) => looseKey(text));
    expect(new Set(keys).size).toBe(keys.length);
  });

  it.each(cases.none)('is absent for %j', (text) => {
    expect(looseKey(text)).toBeUndefined();
  });

  it('of a longer key is that key', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 0x10_ff_ff }), { maxLength: 12 }), (points) => {
        const key = looseKey(String.fromCodePoint(...points).toWellFormed());
        fc.pre(key !== undefined && !key.startsWith('='));
        expect(looseKey(key)).toBe(key);
      }),
      { numRuns: rounds({ short: 2_000, nightly: 200_000 }) },
    );
  });
});

describe('the match terms of a record', () => {
  it('are those of strings, and of strings in arrays, each once', () => {
    const text = JSON.stringify({
      code: 'E11.65',
      codes: ['e11 65', 'E11-65', 7, null, ['A1'], { a: 'B2' }, '...'],
    });
    expect(termsIn(matchTerms(text, ['code', 'codes', 'other']))).toEqual(
      expected({ code: ['E11.65'], codes: ['E1165'] }),
    );
    expect(matchTerms(text, [])).toHaveLength(0);
    expect(matchTerms('{"code":1,"codes":{"a":"A1"},"other":true}', ['code', 'codes', 'other'])).toHaveLength(
      0,
    );
  });

  it('follow paths through objects and arrays of them, unless a field has the whole name', () => {
    const text = JSON.stringify({
      part: { number: 'N-1', maker: [{ name: 'Ant' }, { name: ['Bee', 'Cow'] }, 'Dog', { nom: 'Eel' }] },
      'part.number': 'N-2',
    });
    expect(
      termsIn(matchTerms(text, ['part.number', 'part.maker.name', 'part', '__proto__', 'constructor.name'])),
    ).toEqual(expected({ 'part.number': ['N-2'], 'part.maker.name': ['Ant', 'Bee', 'Cow'] }));
  });

  it('leave out texts of more than 256 bytes', () => {
    const [longest, longer] = ['é'.repeat(128), 'é'.repeat(129)];
    const text = JSON.stringify({ a: longest, b: longer, c: [longer, longest] });
    expect(termsIn(matchTerms(text, ['a', 'b', 'c']))).toEqual(expected({ a: [longest], c: [longest] }));
    expect(matchedTexts(text, ['b']).get(looseKey(longer)!)).toBeUndefined();
  });

  it('read fields as filters do, and a matched text has its term', () => {
    const texts = (value: Json | undefined): readonly string[] =>
      [value]
        .flat()
        .filter((item): item is string => typeof item === 'string' && looseKey(item) !== undefined);
    fc.assert(
      fc.property(metadata, fc.uniqueArray(name, { maxLength: 4 }), (object, fields) => {
        const document = JSON.parse(object) as Record<string, Json>;
        const found = fields.map((field) => [field, texts(fieldOf(document, field))] as const);
        expect(termsIn(matchTerms(object, fields))).toEqual(expected(Object.fromEntries(found)));
        for (const [field, each] of found) {
          for (const text of each)
            expect(looseKey(matchedTexts(object, [field]).get(looseKey(text)!)!.value)).toBe(looseKey(text));
        }
      }),
      { numRuns: rounds({ short: 2_000, nightly: 100_000 }) },
    );
  });

  it('stand behind those of the metadata, which stay as they are', () => {
    const text = '{"code":"E11.65","n":1}';
    expect(recordTerms(text, [])).toEqual(metadataTerms(text));
    expect(termsIn(recordTerms(text, ['code']))).toEqual(
      new Set([...termsIn(metadataTerms(text)), ...expected({ code: ['e1165'] })]),
    );
  });
});

describe('a matched text', () => {
  const text = '{"sku":["A-1","a1"],"name":"A 1","n":1}';

  it('is the first that has the key, in the order of the fields', () => {
    expect(matchedTexts(text, ['sku', 'name']).get('a1')).toEqual({ field: 'sku', value: 'A-1' });
    expect(matchedTexts(text, ['name', 'sku']).get('a1')).toEqual({ field: 'name', value: 'A 1' });
    expect(matchedTexts(text, ['n', 'name']).get('1')).toBeUndefined();
    expect(matchedTexts(text, []).get('a1')).toBeUndefined();
  });
});
