/**
 * `where` against a plain evaluator, over random documents and conditions, in every state a segment can be in: the
 * active one, sealed ones with postings and without, with columns in memory and in files, merged, replaced and deleted documents,
 * an index just opened.
 */
import { writeFile } from 'node:fs/promises';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { segmentOfColumn } from '../../src/index/segments/derived-data.ts';
import { conditionOf } from '../../src/index/terms/condition.ts';
import { instantOf } from '../../src/index/terms/instant.ts';
import { rounds } from '../rounds.ts';
import { hangMs } from '../support/running/eventually.ts';
import { meetsText, metadata, wherePart, type Json } from '../support/conditions.ts';
import { nearlyDates, writtenDates } from './terms/dates.ts';
import { engineError } from '../support/stages/faults.ts';
import { documentAt, openStage, type Stage } from '../support/stages/index-stage.ts';
import { useHost } from '../support/stages/use-host.ts';

const host = useHost();

interface Planned {
  /** Sealed segments have codes, and so their columns are files. */
  readonly inFiles: boolean;
  readonly texts: readonly string[];
  readonly replaced: readonly string[];
  readonly wheres: readonly string[];
}

const planned: fc.Arbitrary<Planned> = fc.record({
  inFiles: fc.boolean(),
  texts: fc.array(metadata, { minLength: 4, maxLength: 14 }),
  replaced: fc.array(metadata, { maxLength: 3 }),
  wheres: fc.array(wherePart, { minLength: 24, maxLength: 24 }),
});

/** How many documents a count of values finds. */
async function countOf(stage: Stage, text: string): Promise<number> {
  const counting = { fields: ['"kind"'], limit: 1, distinctMax: 1_000, bytesMax: 100_000, timeoutMs: hangMs };
  const where = conditionOf(text, 'where');
  const { documents } = await stage
    .index()
    .read((reader) => reader.countValues({ ...counting, ...(where === undefined ? {} : { where }) }));
  return documents;
}

/** Checks the matches of all conditions, and searches by the first, with and without a filter. */
async function compare(
  stage: Stage,
  stored: ReadonlyMap<string, string>,
  wheres: readonly string[],
): Promise<void> {
  for (const [place, text] of wheres.entries()) {
    const wanted = [...stored].flatMap(([docId, metadataText]) =>
      meetsText(metadataText, text) ? [docId] : [],
    );
    expect([text, await stage.matching(text)]).toEqual([text, wanted.toSorted()]);
    expect([text, await countOf(stage, text)]).toEqual([text, wanted.length]);
    if (place > 0) continue;
    const found = (await stage.search({}, undefined, text)).map(({ docId }) => docId).toSorted();
    expect([text, found]).toEqual([text, wanted.toSorted()]);
    const filtered = (await stage.search({ kind: 1 }, undefined, text)).map(({ docId }) => docId).toSorted();
    const kind = wanted.filter((docId) => (JSON.parse(stored.get(docId)!) as { kind?: Json }).kind === 1);
    expect([text, filtered]).toEqual([text, kind.toSorted()]);
  }
}

const document = (docId: string, metadataText: string) => ({ ...documentAt(docId, 0), metadataText });

/** Damages all postings and every third column, and removes another third of the columns. Returns what it has damaged. */
async function damageDerived(stage: Stage): Promise<readonly string[]> {
  const names = (await stage.blobs.list(`${stage.indexId}/`)).map(({ name }) => name);
  const columns = names.filter((name) => segmentOfColumn(name) !== undefined);
  const damaged = names.filter((name) => name.endsWith('.postings') || columns.indexOf(name) % 3 === 1);
  for (const name of damaged) await writeFile(await stage.blobs.open(name), 'damaged');
  for (const [place, name] of columns.entries()) if (place % 3 === 2) await stage.blobs.remove(name);
  return damaged;
}

/** The reports of the stage, less those of damage that a scrub found before anything else replaced the file. */
function unplanted(stage: Stage, damaged: readonly string[]): readonly unknown[] {
  return stage.errors.filter((error) => !damaged.some((name) => String(error).includes(`${name}: `)));
}

/** Returns the names of the files that it has damaged. */
async function play(stage: Stage, { texts, replaced, wheres }: Planned): Promise<readonly string[]> {
  const stored = new Map<string, string>();
  const upsert = async (documents: readonly (readonly [docId: string, text: string])[]): Promise<void> => {
    await stage.upsert(documents.map(([docId, text]) => document(docId, text)));
    for (const [docId, text] of documents) stored.set(docId, text);
    await compare(stage, stored, wheres);
  };
  const documents = texts.map((text, place) => [`d${place}`, text] as const);
  const half = Math.ceil(documents.length / 2);
  await upsert(documents.slice(0, half));
  await upsert(documents.slice(half));
  if (replaced.length > 0) await upsert(replaced.map((text, place) => [`d${2 * place}`, text] as const));
  await stage.remove('d1');
  stored.delete('d1');
  await compare(stage, stored, wheres);
  await stage.index().maintain();
  await compare(stage, stored, wheres);
  let damaged: readonly string[] = [];
  await stage.reopen(async () => void (damaged = await damageDerived(stage)));
  await compare(stage, stored, wheres);
  await stage.index().mergeAll();
  await compare(stage, stored, wheres);
  return damaged;
}

/** Returns the values that meet the condition. A document has one of them, or none for the empty text. */
async function findsOf(values: readonly string[], condition: string): Promise<readonly string[]> {
  await using stage = await openStage(host);
  await stage.upsert(values.map((text) => document(`id ${text}`, text === '' ? '{}' : `{"v":${text}}`)));
  return (await stage.matching(`{"v":${condition}}`)).map((docId) => docId.slice(3));
}

describe('where', () => {
  it('finds what a plain evaluator finds, in all states of segments', async () => {
    await fc.assert(
      fc.asyncProperty(planned, async (plan) => {
        // A segment is full with four documents.
        await using stage = await openStage(host, {
          segmentTokenVectorsMax: 4,
          sealedSegmentsMax: 2,
          ...(plan.inFiles ? { codesTokenVectorsMin: 1 } : {}),
        });
        expect(unplanted(stage, await play(stage, plan))).toEqual([]);
      }),
      { numRuns: rounds({ short: 8, nightly: 400 }) },
    );
  });

  it.each([
    ['{"gt":1}', ['2', '1.5', '1e400', '9007199254740993']],
    ['{"gte":1}', ['1', '1.0', '2', '1.5', '1e400', '9007199254740993']],
    ['{"lt":1}', ['-1', '0', '-1e400', '-0.10', '-0.11', '1e-400']],
    ['{"lte":1}', ['1', '1.0', '-1', '0', '-1e400', '-0.10', '-0.11', '1e-400']],
    ['{"gt":9007199254740992}', ['9007199254740993', '1e400']],
    ['{"gt":0,"lt":1}', ['1e-400']],
    ['{"gte":-0.11,"lt":-0.1}', ['-0.11']],
    ['{"gt":-0.11,"lte":-0.1}', ['-0.10']],
    ['{"gte":"a"}', ['"a"', '"ab"', '"\uffee"', '"😀"']],
    ['{"gt":"\uffee"}', ['"😀"']],
    ['{"lt":"a"}', ['""']],
    [
      '{"not":{"gte":-1e300}}',
      ['null', 'true', '[1]', '"a"', '"ab"', '""', '"\uffee"', '"😀"', '-1e400', ''],
    ],
    ['{"in":[1,null,[1.0],"a"]}', ['1', '1.0', 'null', '[1]', '"a"']],
    ['{"not":"a"}', 'all but "a"'],
    ['{"in":[]}', []],
    ['{"starts_with":"a"}', ['"a"', '"ab"']],
    ['{"starts_with":""}', ['"a"', '"ab"', '""', '"\uffee"', '"😀"']],
    [String.raw`{"starts_with":"\ud83d"}`, []],
    ['{"starts_with":"ab","gt":"a"}', ['"ab"']],
  ])('%s finds its values', async (condition, wanted) => {
    const values = [
      '1',
      '1.0',
      '2',
      '1.5',
      '1e400',
      '9007199254740993',
      '-1',
      '0',
      '-1e400',
      '-0.10',
      '-0.11',
      '1e-400',
    ];
    values.push('"a"', '"ab"', '""', '"\uffee"', '"😀"', 'null', 'true', '[1]', '');
    const expected = typeof wanted === 'string' ? values.filter((text) => text !== '"a"') : wanted;
    expect(await findsOf(values, condition)).toEqual(expected.toSorted());
  });

  const nanosecond = '"2026-11-27T00:00:00.000000001Z"';
  const midnight = ['"2026-11-27"', '"2026-11-27T02:00:00+02:00"'];
  it.each([
    ['{"exists":true}', 'all but the missing one'],
    ['{"exists":false}', ['']],
    ['{"contains":1}', ['[1]', '[1.0,"a",null]']],
    ['{"contains":"a"}', ['[1.0,"a",null]']],
    ['{"contains":"a","exists":false}', []],
    ['{"contains_any":[null,true]}', ['[1.0,"a",null]']],
    ['{"contains_any":[]}', []],
    ['{"contains_all":[1,"a"]}', ['[1.0,"a",null]']],
    ['{"contains_all":[1,1.0]}', ['[1]', '[1.0,"a",null]']],
    ['{"after":"2026-11-27"}', [nanosecond]],
    [`{"before":${nanosecond}}`, midnight],
    [`{"after":"2026-11-26T23:59:59.999999999Z","before":${nanosecond}}`, midnight],
    ['{"after":"2026-11-27","before":"2026-11-27T00:00:00.000000002Z"}', [nanosecond]],
    ['{"after":"2026-11-27","before":"2026-11-26"}', []],
  ])('%s finds its items, dates and fields', async (condition, wanted) => {
    const values = [
      '1',
      '"a"',
      'null',
      '[1]',
      '[1.0,"a",null]',
      '[[1]]',
      '{"a":1}',
      '[]',
      '"2026-11-31"',
      '',
    ];
    values.push(...midnight, nanosecond);
    const expected = typeof wanted === 'string' ? values.filter((text) => text !== '') : wanted;
    expect(await findsOf(values, condition)).toEqual(expected.toSorted());
  });

  it('compares dates as instants, in whatever form documents and conditions have them', async () => {
    const texts = fc.array(
      fc.oneof(
        writtenDates.map(({ text }) => text),
        nearlyDates,
      ),
      { minLength: 20, maxLength: 40 },
    );
    await fc.assert(
      fc.asyncProperty(texts, async (written) => {
        await using stage = await openStage(host);
        const stored = written.map((text, place) => ({ docId: `d${place}`, instant: instantOf(text) }));
        await stage.upsert(
          stored.map(({ docId }, place) => document(docId, JSON.stringify({ v: written[place] }))),
        );
        for (const [place, text] of written.entries()) {
          const bound = stored[place]?.instant;
          for (const word of ['after', 'before']) {
            const asked = JSON.stringify({ v: { [word]: text } });
            if (bound === undefined) {
              expect(() => conditionOf(asked, 'where')).toThrow('must be a date');
              continue;
            }
            const wanted = stored.filter(
              ({ instant }) =>
                instant !== undefined && (word === 'after' ? instant > bound : instant < bound),
            );
            const found = await stage.matching(asked);
            expect([asked, found]).toEqual([asked, wanted.map(({ docId }) => docId).toSorted()]);
          }
        }
      }),
      { numRuns: rounds({ short: 10, nightly: 500 }) },
    );
  });

  it('leaves values that are too long out of every range', async () => {
    await using stage = await openStage(host);
    const values = [
      `"${'b'.repeat(256)}"`,
      `"${'b'.repeat(257)}"`,
      '1e29000',
      '1e31000',
      `1${'0'.repeat(600)}1`,
      '1e123456789012345678',
    ];
    await stage.upsert(values.map((text, place) => document(`d${place}`, `{"v":${text}}`)));
    expect(await stage.matching('{"v":{"gte":"b"}}')).toEqual(['d0']);
    expect(await stage.matching('{"v":{"gt":0}}')).toEqual(['d2', 'd3']);
    for (const start of ['', 'b', 'b'.repeat(256)])
      expect(await stage.matching(`{"v":{"starts_with":"${start}"}}`)).toEqual(['d0', 'd1']);
  });

  const nested = {
    plain: '{"author":{"name":"Ada","born":1815,"tags":["x"],"of":{"born":1}}}',
    whole: '{"author.name":"Bob","author":{"name":"Ada"}}',
    list: '{"author":[{"name":"Ada"},{"name":"Cy","born":1815},"Ada",[{"name":"Di"}]]}',
    lists: '{"author":[{"name":["Ada",1]},{"name":[]}]}',
    empty: '{"author":[{"name":[]}]}',
    none: '{"author":{"name":null},"name":"Ada"}',
    escaped: '{"auth\\u006fr":{"n\\u0061me":"Ada","name.x":"Ada"}}',
    whole_list: '{"author.tags":["x"]}',
  };
  it.each([
    ['{"author.name":"Ada"}', ['plain', 'escaped']],
    ['{"author.name":{"in":["Bob",null]}}', ['whole', 'none']],
    ['{"author.name":{"not":"Ada"}}', ['whole', 'list', 'lists', 'empty', 'none', 'whole_list']],
    ['{"author.name":{"contains":"Ada"}}', ['list', 'lists']],
    ['{"author.name":{"contains":"Di"}}', []],
    ['{"author.name":{"contains_all":[1,"Ada"]}}', ['lists']],
    ['{"author.name":{"exists":false}}', ['whole_list']],
    ['{"author.born":{"gte":1000}}', ['plain']],
    ['{"author.born":{"contains":1815}}', ['list']],
    ['{"author.of.born":1.0}', ['plain']],
    ['{"author.name.x":{"exists":true}}', []],
    ['{"author.tags":["x"]}', ['whole_list']],
    ['{"author.tags":{"contains":"x"}}', ['plain', 'whole_list']],
    ['{"author.of":{"in":[{"born":1}]}}', []],
    ['{"author.name":{"starts_with":"A"}}', ['plain', 'escaped']],
    ['{"any_of":[{"author.born":{"lt":9e9}},{"author.name":"Bob"}]}', ['plain', 'whole']],
  ])('reads nested fields and arrays of objects, and whole names first: %s', async (where, wanted) => {
    await using stage = await openStage(host);
    await stage.upsert(Object.entries(nested).map(([docId, text]) => document(docId, text)));
    expect(await stage.matching(where)).toEqual(wanted.toSorted());
  });

  it('reads the metadata of new documents alone', async () => {
    await using stage = await openStage(host);
    const range = '{"v":{"gt":1}}';
    await stage.upsert([document('a', '{"v":1}'), document('b', '{"v":2}')]);
    expect(await stage.matching(range)).toEqual(['b']);
    stage.faults.set('readMetadata', engineError('io'));
    expect(await stage.matching(range)).toEqual(['b']);
    // An equality needs no values.
    expect(await stage.matching('{"w":{"not":1}}')).toEqual(['a', 'b']);
    await stage.upsert([document('c', '{"v":3}')]);
    await expect(stage.matching(range)).rejects.toMatchObject({ code: 'service_unavailable' });
    expect(await stage.matching(range)).toEqual(['b', 'c']);
  });

  it('answers with 503 past its deadline, and goes on reading for others', async () => {
    await using stage = await openStage(host);
    await stage.upsert([document('a', '{"v":1}')]);
    const reading = stage.hold('readMetadata');
    const where = conditionOf('{"v":{"gt":0}}', 'where')!;
    const ask = (timeoutMs: number) => stage.index().read((reader) => reader.matching({ where, timeoutMs }));
    const patient = ask(30_000);
    await reading.reached;
    await expect(ask(20)).rejects.toMatchObject({ code: 'service_unavailable' });
    reading.release();
    expect(await patient).toHaveLength(1);
  });
});

describe('a condition', () => {
  it.each([
    ['{"a":{}}', 'where.a', 'too_small'],
    ['{"a":{"like":"x"}}', 'where.a', 'unrecognized_keys'],
    ['{"a":{"constructor":1}}', 'where.a', 'unrecognized_keys'],
    ['{"a":{"in":1}}', 'where.a.in', 'invalid_type'],
    ['{"a":{"contains":["x"]}}', 'where.a.contains', 'invalid_type'],
    ['{"a":{"contains_any":"x"}}', 'where.a.contains_any', 'invalid_type'],
    ['{"a":{"contains_any":[{}]}}', 'where.a.contains_any', 'invalid_type'],
    ['{"a":{"contains_all":1}}', 'where.a.contains_all', 'invalid_type'],
    ['{"a":{"contains_all":[]}}', 'where.a.contains_all', 'too_small'],
    [`{"a":{"contains":"${'x'.repeat(257)}"}}`, 'where.a.contains', 'too_big'],
    ['{"a":{"exists":1}}', 'where.a.exists', 'invalid_type'],
    ['{"a":{"starts_with":1}}', 'where.a.starts_with', 'invalid_type'],
    [`{"a":{"starts_with":"${'x'.repeat(257)}"}}`, 'where.a.starts_with', 'too_big'],
    [`{"${Array(17).fill('a').join('.')}":1}`, `where.${Array(17).fill('a').join('.')}`, 'too_deep'],
    [`{"a.${'b'.repeat(254)}":1}`, `where.a.${'b'.repeat(62)}`, 'too_big'],
    [`{${Array.from({ length: 17 }, (_, n) => `"a.${n}":1`).join(',')}}`, 'where.a.16', 'too_big'],
    ['{"a":{"after":5}}', 'where.a.after', 'invalid_format'],
    ['{"a":{"after":"2026-02-29"}}', 'where.a.after', 'invalid_format'],
    ['{"a":{"before":"2026-01-01T00:00:00 CET"}}', 'where.a.before', 'invalid_format'],
    ['{"a":{"gt":null}}', 'where.a.gt', 'invalid_type'],
    ['{"a":{"gt":true}}', 'where.a.gt', 'invalid_type'],
    ['{"a":{"gt":1,"lt":"b"}}', 'where.a', 'invalid_type'],
    ['{"a":{"gt":1,"gte":1}}', 'where.a', 'invalid_range'],
    ['{"a":{"gt":1e400}}', 'where.a.gt', 'too_big'],
    ['{"a":{"gt":1e-400}}', 'where.a.gt', 'too_big'],
    [`{"a":{"gt":"${'x'.repeat(257)}"}}`, 'where.a.gt', 'too_big'],
    ['{"any_of":{}}', 'where.any_of', 'invalid_type'],
    ['{"any_of":[1]}', 'where.any_of.0', 'invalid_type'],
    ['{"any_of":[{"a":{"not":{}}}]}', 'where.any_of.0.a.not', 'too_small'],
    [`${'{"any_of":['.repeat(4)}{}${']}'.repeat(4)}`, `where${'.any_of.0'.repeat(4)}`, 'too_deep'],
    [`{"a":{"in":[${Array(257).fill('1').join(',')}]}}`, 'where.a.in', 'too_big'],
    [
      `{${Array.from({ length: 257 }, (_, place) => `"${place}":{"in":[]}`).join(',')}}`,
      'where.256.in',
      'too_big',
    ],
  ])('is refused: %.60s', (text, path, code) => {
    let refused: unknown;
    try {
      conditionOf(text, 'where');
    } catch (error) {
      refused = error;
    }
    expect(refused).toMatchObject({ code: 'validation_error', issues: [{ path, code }] });
  });

  it.each([
    ['$gt', 'gt'],
    ['$gte', 'gte'],
    ['>=', 'gte'],
    ['$in', 'in'],
    ['$ne', 'not'],
    ['$eq', 'the value alone'],
    ['$nin', '{"not":{"in":[...]}}'],
    ['GreaterThan', 'gt'],
    ['containsAny', 'contains_any'],
    ['$all', 'contains_all'],
    ['Exists', 'exists'],
    ['is_null', '{"exists":false}'],
    ['prefix', 'starts_with'],
    ['range', 'gt, gte, lt or lte'],
  ])('with the operator %s of another product is refused with our word', (operator, own) => {
    const text = JSON.stringify({ a: { [operator]: 1 } });
    expect(() => conditionOf(text, 'where')).toThrow(`must not hold ${operator}: write ${own}`);
  });

  const letters = (count: number, of: (place: number) => string): string =>
    Array.from({ length: count }, (_, place) => of(place)).join(',');
  it.each([
    ['values', `{"a":{"in":[${letters(256, (n) => `"${String(n).padStart(58, 'x')}"`)}]}}`],
    ['escapes', `{"a":{"in":[${letters(85, () => `"${String.raw`\n`.repeat(90)}"`)}]}}`],
    ['a value of fields', `{"a":{"in":[{${letters(1_700, (n) => `"${n.toString(36)}":0`)}}]}}`],
    ['a value of lists', `{"a":{"in":[[${letters(1_400, () => '[[[[[]]]]]')}]]}}`],
    [
      'nested any_of',
      `{"any_of":[${letters(200, (n) => `{"any_of":[{"any_of":[{"f${n}":{"gt":${n}}}]}]}`)}]}`,
    ],
    ['items', `{"a":{"contains_any":[${letters(256, (n) => `"${String(n).padStart(58, 'x')}"`)}]}}`],
    ['opposites', `{"any_of":[${letters(85, (n) => `{"a":{"not":{"exists":true,"gt":${n}}}},{"b":${n}}`)}]}`],
    ['digits', `{"a":{"in":[${letters(50, () => `${'9'.repeat(300)}e-5`)}]}}`],
  ])('is read within a turn of the event loop, be it of %s', (_name, text) => {
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(16_384);
    const times = Array.from({ length: 5 }, () => {
      const before = process.cpuUsage();
      conditionOf(text, 'where');
      const { user, system } = process.cpuUsage(before);
      return (user + system) / 1_000;
    });
    // It takes 0.3 to 3.
    expect(Math.min(...times)).toBeLessThan(30);
  });
});
