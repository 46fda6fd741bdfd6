/** Conditions that every document meets are recognised, because a deletion by one is refused. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { conditionTree } from '../../../src/index/terms/condition.ts';
import { everyDocumentMeets } from '../../../src/index/terms/every-document.ts';
import { rounds } from '../../rounds.ts';
import { conditions, meetsText, metadata, name, wherePart, whereOf } from '../../support/conditions.ts';

const decides = (text: string): boolean => everyDocumentMeets(conditionTree(text, 'where'));

describe('a condition that every document meets', () => {
  it('is met by every document, whenever it is recognised', () => {
    let recognised = 0;
    fc.assert(
      fc.property(
        whereOf([conditions]),
        fc.array(metadata, { minLength: 1, maxLength: 5 }),
        (text, documents) => {
          if (!decides(text)) return;
          recognised += 1;
          for (const document of documents)
            expect([document, meetsText(document, text)]).toEqual([document, true]);
        },
      ),
      { numRuns: rounds({ short: 2_000, nightly: 100_000 }) },
    );
    expect(recognised).toBeGreaterThan(100);
  });

  it('is recognised as a condition of a field or its opposite', () => {
    fc.assert(
      fc.property(name, conditions, wherePart, (field, condition, other) => {
        const [one, opposite] = [`{"${field}":${condition}}`, `{"${field}":{"not":${condition}}}`];
        expect([one, decides(`{"any_of":[${one},${other},${opposite}]}`)]).toEqual([one, true]);
      }),
      { numRuns: rounds({ short: 1_000, nightly: 50_000 }) },
    );
  });

  it.each([
    '{}',
    '{"any_of":[{}]}',
    '{"any_of":[{"x":1},{}]}',
    '{"any_of":[{"any_of":[{"any_of":[{}]}]}]}',
    '{"x":{"not":{"in":[]}}}',
    '{"x":{"not":{"in":[],"gt":3}}}',
    '{"x":{"not":{"not":{"not":{"in":[]}}}},"any_of":[{},{"y":2}]}',
    '{"x":{"not":{"in":[],"not":1}}}',
    '{"x":{"not":{"contains_any":[]}}}',
    '{"x":{"not":{"after":"2026-01-01","before":"2026-01-01T00:00:00.000000001Z"}}}',
    '{"x":{"not":{"after":"9999-12-31T23:59:59.999999999-23:59"}}}',
    '{"x":{"not":{"before":"0000-01-01T00:00:00+23:59"}}}',
    '{"any_of":[{"x":{"exists":true}},{"x":{"exists":false}}]}',
    '{"any_of":[{"x":{"exists":true}},{"y":2},{"x":{"not":{"contains":1}}}]}',
    '{"x":{"not":{"exists":false,"in":[1]}}}',
    '{"a":{"not":{"gt":5,"lt":1}}}',
    '{"a":{"not":{"gt":5,"lt":5}}}',
    '{"a":{"not":{"gt":"5","lt":"1"}}}',
    '{"a":{"not":{"lt":""}}}',
    '{"a":{"not":{"gt":"x","lt":"x\\u0000"}}}',
    '{"a":{"not":{"in":[1,"b"],"gt":2,"lt":9}}}',
    '{"a":{"not":{"gt":1,"exists":false}}}',
    '{"a":{"not":{"contains":1,"in":[[2,3],"x"]}}}',
    '{"a":{"not":{"contains":1,"gt":1}}}',
    '{"a":{"not":{"after":"2026-01-01","gt":1}}}',
    '{"a":{"not":{"after":"2026-01-01","in":["2025-01-01","x",7]}}}',
    '{"any_of":[{"a":1},{"a":{"not":1}}]}',
    '{"any_of":[{"a":1.0},{"b":2},{"\\u0061":{"not":{"in":[10e-1,"c"]}}},{"a":"c"}]}',
    '{"any_of":[{"a":{"lt":5}},{"a":{"not":{"lt":5}}}]}',
    '{"any_of":[{"a":{"lt":5}},{"a":{"gte":5}},{"a":{"not":{"gt":-1e300}}},{"a":{"not":{"lt":1e300}}}]}',
    '{"any_of":[{"a":{"lt":1e2,"not":5}},{"a":{"not":{"lt":99}}},{"a":5.0}]}',
    '{"any_of":[{"a":{"not":{"lt":5}}},{"a":{"not":{"gt":5}}}]}',
    '{"any_of":[{"a":{"not":{"after":"2026-06-01"}}},{"a":{"after":"2026-01-01"}}]}',
    '{"any_of":[{"a":{"not":1}},{"a":{"not":2}}]}',
    '{"any_of":[{"a":{"contains_any":[1,2]}},{"a":{"not":{"contains":2}}}]}',
    '{"any_of":[{"a":1,"b":1},{"a":{"not":1},"b":1},{"b":{"not":1}}]}',
    '{"any_of":[{"a":{"exists":true},"any_of":[{"b":1},{"b":{"not":1}}]},{"a":{"exists":false}}]}',
    '{"a":{"not":{"gt":5,"lt":1}},"b":{"not":{"in":[]}}}',
    '{"any_of":[{"a":{"starts_with":""}},{"a":{"not":{"starts_with":""}}}]}',
    '{"any_of":[{"a":{"starts_with":""}},{"a":{"not":{"starts_with":"x"}}}]}',
    '{"any_of":[{"a":{"starts_with":"x"}},{"a":{"not":{"starts_with":"xy"}}}]}',
    '{"a":{"not":{"starts_with":"a","lt":"a"}}}',
    '{"a":{"not":{"starts_with":"a","gte":"b"}}}',
    '{"a":{"not":{"starts_with":"a","not":{"starts_with":""}}}}',
    '{"a":{"not":{"starts_with":"","gt":1}}}',
    '{"a":{"not":{"starts_with":"x","in":["y",1,null]}}}',
    '{"a":{"not":{"starts_with":"\\ud83d","in":["\\ud83d\\ude00"]}}}',
    '{"any_of":[{"a.b":1},{"a.b":{"not":1}}]}',
    '{"any_of":[{"a.b":{"starts_with":"x"}},{"a.b":{"not":{"starts_with":"x"}}}]}',
  ])('is recognised: %s', (text) => {
    expect(decides(text)).toBe(true);
  });

  it.each([
    '{"any_of":[]}',
    '{"x":{"not":{"in":[1],"not":{"in":[]}}}}',
    '{"x":{"gte":""}}',
    '{"x":{"exists":true}}',
    '{"any_of":[{"x":{"exists":true}},{"y":{"exists":false}}]}',
    '{"any_of":[{"x":{"exists":false}},{"x":{"contains":1}}]}',
    '{"any_of":[{"x":{"lt":5}},{"x":{"gte":5}},{"x":{"exists":false}}]}',
    '{"x":{"not":{"gt":1,"lt":1.0000000000000000000001}}}',
    '{"x":{"not":{"gte":"\\ud800","lte":"\\ud800"}}}',
    '{"x":{"not":{"gt":"\\uffee","lt":"\\ud83d\\ude00"}}}',
    '{"x":{"not":{"in":[1e400],"gt":5}}}',
    '{"x":{"not":{"contains":1,"in":[[2,1.0]]}}}',
    '{"x":{"not":{"after":"2026-01-01","in":["2026-01-02"]}}}',
    '{"x":{"starts_with":""}}',
    '{"x":{"not":{"starts_with":""}}}',
    '{"any_of":[{"x":{"gte":""}},{"x":{"not":{"starts_with":""}}}]}',
    '{"any_of":[{"x":{"gte":"a","lt":"b"}},{"x":{"not":{"starts_with":"a"}}}]}',
    '{"x":{"not":{"starts_with":"\\uffff","gt":"\\uffff"}}}',
    '{"any_of":[{"a":1},{"a.b":{"not":1}}]}',
  ])('is another one than %s', (text) => {
    expect(decides(text)).toBe(false);
  });

  const alternatives = (count: number, part: (n: number) => string): readonly string[] =>
    Array.from({ length: count }, (_, n) => part(n));
  const unrelated = (n: number): string => `{"x${n}":1,"y${n}":1}`;
  const pairs = ['{"a":1,"b":1}', '{"a":{"not":1},"b":1}', '{"b":{"not":1}}'];
  it.each([
    ['values', true, alternatives(256, (n) => `{"v":{"not":${n}}}`)],
    ['ranges', false, alternatives(128, (n) => `{"v":{"gte":${n},"lt":${n + 1}}}`)],
    [
      'ranges of one field',
      true,
      [...alternatives(128, (n) => `{"v":{"gte":${n}}}`), '{"v":{"not":{"gte":5}}}'],
    ],
    [
      'dates',
      false,
      alternatives(128, (n) => `{"v":{"not":{"after":"20${10 + (n % 90)}-01-01"}},"w":{"not":{"in":[]}}}`),
    ],
    [
      'items',
      true,
      [
        ...alternatives(99, (n) => `{"v":{"contains":${n},"not":{"contains":${n + 1}}}}`),
        '{"v":{"not":{"contains":0}}}',
        '{"v":{"contains":99}}',
      ],
    ],
    ['long strings', false, alternatives(99, (n) => `{"v":{"gte":"${'x'.repeat(100)}${n}"}}`)],
    ['unrelated fields', true, [...alternatives(9, unrelated), ...pairs]],
    ['more unrelated fields than a search may try', false, [...pairs, ...alternatives(120, unrelated)]],
  ])('is looked for in bounded time: %s', (_name, found, parts) => {
    const text = `{"any_of":[${parts.join(',')}]}`;
    const started = process.cpuUsage();
    expect(decides(text)).toBe(found);
    const { user, system } = process.cpuUsage(started);
    // Without a bound the last one takes years.
    expect(user + system).toBeLessThan(2_000_000);
  });
});
