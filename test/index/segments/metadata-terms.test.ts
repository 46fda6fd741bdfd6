import { createHash } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalMembers, canonicalNumber } from '../../../src/index/terms/canonical-json.ts';
import { metadataTerms, termBytes } from '../../../src/index/terms/metadata-terms.ts';

/** The term of a field with this value, given as JSON text. */
function termOf(json: string, field = 'field'): string {
  return Buffer.from(metadataTerms(`{${JSON.stringify(field)}:${json}}`)).toString('hex');
}

function term(value: unknown, field?: string): string {
  return termOf(JSON.stringify(value), field);
}

/** The canonical form of a value, given as JSON text. */
function canonicalJson(json: string): string {
  return canonicalMembers(`{"":${json}}`).get('""') ?? '';
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
        // Two values differ when their JSON differs, apart from the sign of zero.
        fc.pre(canonicalJson(JSON.stringify(a)) !== canonicalJson(JSON.stringify(b)));
        expect(term(a)).not.toBe(term(b));
      }),
    );
  });

  it('have a canonical form that parses back to the same value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const json = JSON.stringify(value);
        expect(JSON.parse(canonicalJson(json))).toEqual(JSON.parse(json));
      }),
    );
  });

  it('are what segments hold: SHA-256 of field and value, cut to 128 bits', () => {
    expect(term('é', 'a')).toBe(createHash('sha256').update('"a":"é"').digest('hex').slice(0, 32));
  });

  it('do not depend on how a string is escaped', () => {
    expect(termOf(String.raw`"\u0061\u00E9\/\ud83d\ude00\u000a"`)).toBe(term('aé/😀\n'));
    expect(termOf(String.raw`{"\u0061":1}`)).toBe(term({ a: 1 }));
    expect(termOf(String.raw`"\uD800"`)).toBe(term('\ud800'));
    expect(termOf('1', '\u00e9')).toBe(termOf('1', 'é'));
  });

  it('are of the last value of a key given twice', () => {
    expect(metadataTerms('{"a":1,"b":0,"a":2}')).toEqual(metadataTerms('{"a":2,"b":0}'));
    expect(termOf('{"a":1,"b":0,"a":2}')).toBe(term({ a: 2, b: 0 }));
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
    expect(metadataTerms('{"__proto__":1,"constructor":2}')).toHaveLength(2 * termBytes);
  });

  it('hold one term for each field', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (fields) => {
        // `Object.fromEntries` would drop an own `__proto__`.
        const members = Object.entries(fields).map(
          ([field, value]) => `${JSON.stringify(field)}:${JSON.stringify(value)}`,
        );
        const terms = Buffer.from(metadataTerms(`{${members.join(',')}}`)).toString('hex');
        expect(terms).toBe(
          Object.entries(fields)
            .map(([field, value]) => term(value, field))
            .join(''),
        );
      }),
    );
  });
});

describe('numbers', () => {
  /** A number as an integer times a power of ten that all numbers here share, for exact arithmetic. */
  const scale = 400n;
  function exactly(token: string): bigint {
    const [, sign, whole = '', fraction = '', exponent = '0'] =
      /^(-?)(\d+)\.?(\d*)(?:e([-+]?\d+))?$/i.exec(token) ?? [];
    const power = BigInt(exponent) - BigInt(fraction.length) + scale;
    return BigInt(`${whole}${fraction}`) * 10n ** power * (sign === '-' ? -1n : 1n);
  }
  const digits = (maxLength: number) =>
    fc
      .array(fc.constantFrom('0', '0', '0', '1', '9'), { minLength: 1, maxLength })
      .map((all) => all.join(''));
  const token = fc
    .record({
      sign: fc.constantFrom('', '-'),
      whole: digits(20).map((all) => all.replace(/^0+(?=\d)/, '')),
      fraction: fc.option(digits(20)),
      exponent: fc.option(fc.tuple(fc.constantFrom('e', 'E', 'e+', 'e-'), digits(2))),
    })
    .map(
      ({ sign, whole, fraction, exponent }) =>
        `${sign}${whole}${fraction === null ? '' : `.${fraction}`}${exponent === null ? '' : exponent.join('')}`,
    );

  it('have the same canonical form exactly when they are equal', () => {
    fc.assert(
      fc.property(token, token, (a, b) => {
        expect([a, exactly(canonicalNumber(a))]).toEqual([a, exactly(a)]);
        expect(canonicalNumber(canonicalNumber(a))).toBe(canonicalNumber(a));
        expect(canonicalNumber(a) === canonicalNumber(b)).toBe(exactly(a) === exactly(b));
      }),
      { numRuns: 3_000 },
    );
  });

  it.each([
    ['1', '1.0', '1e0', '10e-1', '0.1e1', '1E+00', '100000e-5'],
    ['0', '-0', '0.000', '0e400', '-0E-99999999999999999999'],
    ['1e308', '10e307', `1${'0'.repeat(308)}`],
    ['1e400', '0.1e401', '1E+0400'],
    ['-9007199254740993', '-9007199254740993.0', '-9.007199254740993e15'],
    ['12e99999999999999999999', '1.2e100000000000000000000'],
    ['12e-99999999999999999999', '1.2e-99999999999999999998'],
  ])('take %s and its like for one number', (first, ...others) => {
    for (const other of others)
      expect([other, canonicalNumber(other)]).toEqual([other, canonicalNumber(first)]);
  });

  it.each([
    ['1', '-1'],
    ['1e400', '1e401'],
    ['1e400', '-1e400'],
    ['1e-400', '0'],
    ['9007199254740993', '9007199254740992'],
    ['0.1', '0.1000000000000000055511151231257827'],
    ['10', '1'],
  ])('tell %s from %s', (a, b) => {
    expect(canonicalNumber(a)).not.toBe(canonicalNumber(b));
  });

  it('add the point to exponents of any length', () => {
    const exponent = fc
      .tuple(fc.constantFrom('', '+', '-'), digits(40))
      .map(([sign, power]) => ({ sign, power, value: BigInt(`${sign === '-' ? '-' : ''}${power}`) }));
    fc.assert(
      fc.property(exponent, fc.integer({ min: 0, max: 20 }), ({ sign, power, value }, zeros) => {
        const name = (sum: bigint) => `1${sum === 0n ? '' : `e${sum}`}`;
        expect(canonicalNumber(`1${'0'.repeat(zeros)}e${sign}${power}`)).toBe(name(value + BigInt(zeros)));
        expect(canonicalNumber(`0.${'0'.repeat(zeros)}1e${sign}${power}`)).toBe(
          name(value - BigInt(zeros) - 1n),
        );
      }),
      { numRuns: 3_000 },
    );
  });

  it.each([
    [
      '1e308',
      (bytes: number) =>
        Array(Math.floor(bytes / 6))
          .fill('1e308')
          .join(','),
    ],
    [
      '1e-308',
      (bytes: number) =>
        Array(Math.floor(bytes / 7))
          .fill('1e-308')
          .join(','),
    ],
    ['many digits', (bytes: number) => '9'.repeat(bytes)],
    ['many digits before a zero', (bytes: number) => `${'10'.repeat(bytes / 2)}1`],
    ['many digits of an exponent', (bytes: number) => `1e${'9'.repeat(bytes)}`],
    ['many zeros after the point', (bytes: number) => `0.${'0'.repeat(bytes)}1`],
  ])('cost the bytes that they are written with: %s', (_name, numbers) => {
    const bytes = 1_048_576;
    // Processor time does not count other processes. It may come in ticks of 4 ms.
    const costMs = (text: string) => {
      const runs = Array.from({ length: 4 }, () => {
        const before = process.threadCpuUsage();
        metadataTerms(`{"a":[${text}]}`);
        const { user, system } = process.threadCpuUsage(before);
        return (user + system) / 1000;
      });
      return Math.min(...runs);
    };
    const plain = costMs(
      Array(bytes / 2)
        .fill('9')
        .join(','),
    );
    expect(costMs(numbers(bytes))).toBeLessThan(4 * (plain + 4));
  });
});
