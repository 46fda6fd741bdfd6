/** Hints at the reason why nothing was found, from a few documents. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fieldHint } from '../../../src/service/hints/field-hints.ts';
import { openServiceStage, type ServiceStage, type TenantStage } from '../../support/stages/service-stage.ts';

const objects = [
  '{"year":"2004","kind":"paper","tags":["a"],"author":{"name":"Ada"},"open":true}',
  '{"year":"1967","kind":"book","parts":[{"title":"Wax"}],"n":1}',
];
const whole = (where: string) => fieldHint({ where }, { objects, isWhole: true });

describe('a hint', () => {
  it.each([
    ['{"yeer":1}', 'no document has the field "yeer", but there is "year"'],
    ['{"author.nane":"Ada"}', 'no document has the field "author.nane", but there is "author.name"'],
    ['{"part.title":{"exists":true}}', 'no document has the field "part.title", but there is "parts.title"'],
    ['{"zzzzzzzzzzzz":{"starts_with":""}}', 'no document has the field "zzzzzzzzzzzz"'],
    ['{"year":2004}', '"year" is a string in the documents, and is compared with a number'],
    ['{"year":{"gte":2000,"lt":2010}}', '"year" is a string in the documents, and is compared with a number'],
    ['{"n":"1"}', '"n" is a number in the documents, and is compared with a string'],
    ['{"n":{"starts_with":"1"}}', '"n" is a number in the documents, and is compared with a string'],
    [
      '{"open":{"in":["yes",1]}}',
      '"open" is true or false in the documents, and is compared with a string or a number',
    ],
    [
      '{"kind":{"contains":"paper"}}',
      '"kind" is a string in the documents, and is compared with an array: write the value alone, or in for one of several values',
    ],
    [
      '{"kind":["paper","book"]}',
      '"kind" is a string in the documents, and is compared with an array: write the value alone, or in for one of several values',
    ],
    [
      '{"tags":"a"}',
      '"tags" is an array in the documents, and is compared with a string: contains finds an item of an array',
    ],
    [
      '{"parts.title":"Wax"}',
      '"parts.title" is an array in the documents, and is compared with a string: contains finds an item of an array',
    ],
    [
      '{"kind":"paper","author":"Ada"}',
      '"author" is an object in the documents, and is compared with a string',
    ],
  ])('tells the reason of %s', (where, hint) => {
    expect(whole(where)).toBe(hint);
  });

  it.each([
    '{"kind":"song"}',
    '{"year":{"gt":"3000"}}',
    '{"tags":{"contains":1}}',
    '{"parts.title":{"contains":"x"}}',
    '{"absent":{"not":1}}',
    '{"absent":{"exists":false}}',
    '{"any_of":[{"absent":1},{"kind":"song"}]}',
    '{}',
  ])('is silent where the documents show no reason: %s', (where) => {
    expect(whole(where)).toBeUndefined();
  });

  it('of a filter takes names as they are, and says how much was looked at', () => {
    const of = (filter: string, isWhole = false) => fieldHint({ filter }, { objects, isWhole });
    expect(of('{"author.name":"Ada"}')).toBe(
      'filter takes names as they are: where finds the nested field "author.name"',
    );
    expect(of('{"kin":1}')).toBe('none of the first 2 documents has the field "kin", but there is "kind"');
    expect(of('{"year":4}')).toBe(
      '"year" is a string in the first 2 documents, and is compared with a number',
    );
    expect(of('{"kind":"song"}')).toBeUndefined();
  });
});

describe('an empty answer', () => {
  let stage: ServiceStage;
  let tenant: TenantStage;
  let indexId: string;
  beforeAll(async () => {
    stage = await openServiceStage();
    tenant = await stage.newTenant();
    indexId = await tenant.createIndex();
    const documents = objects.map((metadata, n) => ({ docId: `d${n}`, text: 'word', metadata }));
    await stage.service.upsertDocuments(tenant.context(), indexId, documents);
  });
  afterAll(async () => stage[Symbol.asyncDispose]());

  const query = { query: 'word', returnComponents: false };
  const [where, hint] = ['{"yeer":1}', expect.stringContaining('"year"') as string];

  it('has a hint in searches, lists, counts and deletions', async () => {
    expect(await tenant.search(indexId, 'word', { where })).toMatchObject({ results: [], hint });
    const { service } = stage;
    expect(await service.listDocuments(tenant.context(), indexId, { where, limit: 1 })).toMatchObject({
      hint,
    });
    const counting = { fields: ['kind'], limit: 1, where };
    expect(await service.countValues(tenant.context(), indexId, counting)).toMatchObject({ hint });
    const deletion = { where, limit: 1, dryRun: false };
    expect(await service.deleteMatching(tenant.context(), indexId, deletion)).toMatchObject({ hint });
  });

  it('looks for the reason once in a request, and not where something was found', async () => {
    const empty = { ...query, where };
    const { results } = await stage.service.query(tenant.context(), indexId, [query, empty, empty]);
    expect(results.map((answer) => answer.hint)).toEqual([undefined, hint, undefined]);
    for (const more of [{ where: '{"kind":"book"}' }, { where, offset: 1 }, {}])
      expect(await tenant.search(indexId, 'word', more)).not.toHaveProperty('hint');
  });
});

it('the time of a hint does not grow with the conditions on one field', () => {
  const many = JSON.stringify({ a: [{ b: 1 }, ...Array.from({ length: 5_000 }, () => ({}))] });
  const where = JSON.stringify({ 'a.b': { contains_all: Array.from({ length: 256 }, (_, at) => at + 2) } });
  const times = Array.from({ length: 3 }, () => {
    const startMs = performance.now();
    fieldHint({ where }, { objects: Array.from({ length: 16 }, () => many), isWhole: true });
    return performance.now() - startMs;
  });
  // It took seconds where each condition read the values again.
  expect(Math.min(...times)).toBeLessThan(300);
});
