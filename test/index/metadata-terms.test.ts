import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson, metadataTerms, termBytes } from '../../src/index/metadata-terms.ts';

function term(value: unknown, field = 'field'): string {
  return Buffer.from(metadataTerms({ [field]: value })).toString('hex');
}

/** The same value with the keys of every object in another order. */
function shuffled(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shuffled);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, member]) => [key, shuffled(member)] as const)
      .toReversed(),
  );
}

describe('metadata terms', () => {
  it('are equal for values that are equal as JSON, however their keys are ordered', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(term(shuffled(value))).toBe(term(value));
        expect(term(JSON.parse(JSON.stringify(value)))).toBe(term(value));
      }),
    );
  });

  it('differ for values that differ as JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
        // Distinguishes what JSON distinguishes, the sign of zero excepted.
        fc.pre(canonicalJson(a) !== canonicalJson(b));
        expect(term(a)).not.toBe(term(b));
      }),
    );
  });

  it('have a canonical form that parses back to the same value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it('take numbers by value', () => {
    expect(term(JSON.parse('1.0'))).toBe(term(1));
    expect(term(JSON.parse('1e0'))).toBe(term(1));
    expect(term(-0)).toBe(term(0));
    expect(term(JSON.parse('100000000000000000000'))).toBe(term(JSON.parse('1e20')));
    expect(term(0.1)).not.toBe(term(0.2));
  });

  it('keep all digits of integers beyond 2^53', () => {
    const { rawJSON } = JSON as unknown as { rawJSON(this: void, text: string): unknown };
    expect(term(rawJSON('9007199254740993'))).not.toBe(term(rawJSON('9007199254740992')));
    expect(term(rawJSON('9007199254740993'))).toBe(term(rawJSON('9007199254740993')));
    expect(term(rawJSON('9007199254740994'))).toBe(term(9007199254740994));
  });

  it.each([
    [1, '1'],
    [null, 'null'],
    [true, 'true'],
    [[], {}],
    [
      [1, 2],
      [2, 1],
    ],
    [[1], [[1]]],
    ['', null],
    [{ a: 1 }, { a: 1, b: null }],
    ['a', 'A'],
  ])('tell %j from %j', (a, b) => {
    expect(term(a)).not.toBe(term(b));
  });

  it('tell fields apart', () => {
    expect(term(1, 'a')).not.toBe(term(1, 'b'));
    expect(term('b', 'a:')).not.toBe(term(':b', 'a'));
  });

  it('treat __proto__ as a field like any other', () => {
    const metadata = JSON.parse('{"__proto__": 1, "constructor": 2}') as Record<string, unknown>;
    expect(metadataTerms(metadata)).toHaveLength(2 * termBytes);
  });

  it('hold one term for each field', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (fields) => {
        const terms = metadataTerms(fields);
        expect(terms).toHaveLength(Object.keys(fields).length * termBytes);
        for (const [index, [field, value]] of Object.entries(fields).entries()) {
          const single = Buffer.from(terms.subarray(index * termBytes, (index + 1) * termBytes)).toString(
            'hex',
          );
          // Object.fromEntries would drop an own __proto__.
          const alone = JSON.parse(`{${JSON.stringify(field)}:${JSON.stringify(value)}}`) as Record<
            string,
            unknown
          >;
          expect(single).toBe(Buffer.from(metadataTerms(alone)).toString('hex'));
        }
      }),
    );
  });
});
