/** Merging a patch into stored metadata: every case of RFC 7396, and what JSON text can hold. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { mergePatch } from '../../../src/index/terms/merge-patch.ts';

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** RFC 7396, section 2, on values. */
function reference(target: Json | undefined, patch: Json): Json {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const isObject = typeof target === 'object' && target !== null && !Array.isArray(target);
  const merged = new Map(isObject ? Object.entries(target) : []);
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) merged.delete(name);
    else merged.set(name, reference(merged.get(name), value));
  }
  return Object.fromEntries(merged);
}

describe('merged metadata', () => {
  it.each([
    ['{"a":"b"}', '{"a":"c"}', '{"a":"c"}'],
    ['{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'],
    ['{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'],
    ['{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'],
    ['{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'],
    ['{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'],
    ['{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'],
    ['{"e":null}', '{"a":1}', '{"e":null,"a":1}'],
    ['{}', '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'],
    ['{"a":[1,2]}', '{"a":{"a":"b","c":null}}', '{"a":{"a":"b"}}'],
    ['{"a":1}', '{"b":[null,{"c":null}]}', '{"a":1,"b":[null,{"c":null}]}'],
    // Numbers and strings stay as they are written.
    [
      '{"p":1.10,"n":12345678901234567890}',
      '{"q":1.0,"p":2.50}',
      '{"p":2.50,"n":12345678901234567890,"q":1.0}',
    ],
    ['{"o":{"x":1E+2,"s":"\\u00e9"}}', '{"o":{"y":-0}}', '{"o":{"x":1E+2,"s":"\\u00e9","y":-0}}'],
    // Names are equal however they are escaped.
    ['{"a":1}', '{"\\u0061":null}', '{}'],
    ['{"__proto__":{"x":1}}', '{"__proto__":{"y":2}}', '{"__proto__":{"x":1,"y":2}}'],
    // Earlier versions stored a name twice; the last value counts.
    ['{"a":1,"a":2}', '{"b":3}', '{"a":2,"b":3}'],
  ])('of %s and %s are %s', (stored, patch, merged) => {
    expect(mergePatch(stored, patch)).toBe(merged);
  });

  it('are those of RFC 7396 for any two objects', () => {
    const name = fc.constantFrom('a', 'b', 'é', '__proto__', '"');
    const value = fc.letrec<{ value: Json; object: { [name: string]: Json } }>((tie) => ({
      value: fc.oneof(fc.constantFrom<Json>(null, 1, 'x', true, [null], []), tie('object')),
      object: fc.dictionary(name, tie('value'), { maxKeys: 4 }),
    }));
    fc.assert(
      fc.property(value.object, value.object, (stored, patch) => {
        const merged = mergePatch(JSON.stringify(stored), JSON.stringify(patch));
        expect(JSON.parse(merged)).toEqual(reference(stored, patch));
      }),
      { numRuns: 500 },
    );
  });
});
