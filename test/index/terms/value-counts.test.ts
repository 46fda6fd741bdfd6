/** Counts of values against a plain count over parsed metadata. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalMembers } from '../../../src/index/terms/canonical-json.ts';
import { ValueCounts } from '../../../src/index/terms/value-counts.ts';

async function countsOf(documents: readonly string[], field: string, limit = 100) {
  const counts = new ValueCounts();
  for (const document of documents) {
    const value = canonicalMembers(document).get(JSON.stringify(field));
    if (value !== undefined) counts.add(value);
  }
  const values = await counts.mostFrequent(limit);
  return { distinct: counts.distinct, values: values.map(({ value, count }) => [value, count]) };
}

const leaf = fc.oneof(
  fc.integer({ min: -3, max: 12 }),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0),
  fc.constantFrom('a', 'b', 'ab', 'ab!', '"', '\\', '', '\uffee', '😀', 'é', true, false, null),
  fc.string({ unit: 'grapheme', maxLength: 3 }),
);
const value = fc.oneof(leaf, fc.array(leaf, { maxLength: 4 }));
const document = fc.oneof(fc.record({ field: value }), fc.record({ other: value }));

const kindOf = (one: unknown): number => (typeof one === 'number' ? 0 : typeof one === 'string' ? 1 : 2);

function compareValues(one: unknown, other: unknown): number {
  if (kindOf(one) !== kindOf(other)) return kindOf(one) - kindOf(other);
  if (typeof one === 'number' && typeof other === 'number') return one - other;
  const [first, second] = [one, other].map((each) =>
    Array.from(String(each), (point) => point.codePointAt(0)!),
  );
  const place = first!.findIndex((point, at) => point !== second![at]);
  if (place === -1) return first!.length - second!.length;
  return place >= second!.length ? 1 : first![place]! - second![place]!;
}

describe('counting values', () => {
  it('gives what a plain count gives, in the stated order', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(document, { maxLength: 60 }),
        fc.integer({ min: 1, max: 20 }),
        async (documents, limit) => {
          const plain = new Map<unknown, number>();
          for (const one of documents) {
            if (!('field' in one)) continue;
            const values = Array.isArray(one.field)
              ? new Set(one.field.map((item) => (item === 0 ? 0 : item)))
              : [one.field];
            for (const each of values) plain.set(each, (plain.get(each) ?? 0) + 1);
          }
          const expected = [...plain]
            .toSorted(([one, count], [other, otherCount]) => otherCount - count || compareValues(one, other))
            .slice(0, limit)
            .map(([each, count]) => [JSON.stringify(each), count]);
          const texts = documents.map((one) => JSON.stringify(one));
          expect(await countsOf(texts, 'field', limit)).toEqual({ distinct: plain.size, values: expected });
        },
      ),
    );
  });

  it('compares as filters do: by exact values, whatever their spelling', async () => {
    const documents = [
      '{"n":1}',
      '{"n":[1.0,10e-1,1]}',
      '{"n":"\\u0031"}',
      '{"n":"1"}',
      '{"n":9007199254740993}',
      '{"n":9007199254740992}',
      '{"n":1e400}',
      '{"n":{"b":1,"a":2}}',
      '{"n":{"a":2.0,"b":1}}',
      '{"n":[]}',
      '{"n":[[2,1],[2,1]]}',
      '{"n":7,"n":null}',
    ];
    expect(await countsOf(documents, 'n')).toEqual({
      distinct: 8,
      values: [
        ['1', 2],
        ['"1"', 2],
        ['{"a":2,"b":1}', 2],
        ['9007199254740992', 1],
        ['9007199254740993', 1],
        ['1e400', 1],
        ['[2,1]', 1],
        ['null', 1],
      ],
    });
  });
});
