/** Counts of values on the real catalog and engine, against a plain count. */
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { canonicalItems } from '../../../src/index/terms/canonical-json.ts';
import { fieldOf, meets, metadata, wherePart, type Json } from '../../support/conditions.ts';
import { openServiceStage, rejection, type ServiceStage } from '../../support/stages/service-stage.ts';

let stage: ServiceStage;
beforeAll(async () => {
  stage = await openServiceStage();
});
afterAll(() => stage[Symbol.asyncDispose]());

const documentsMax = 50;

async function filled(documents: readonly string[], limits = {}) {
  const tenant = await stage.newTenant(limits);
  const indexId = await tenant.createIndex();
  for (let first = 0; first < documents.length; first += documentsMax) {
    await stage.service.upsertDocuments(
      tenant.context(),
      indexId,
      documents
        .slice(first, first + documentsMax)
        .map((object, place) => ({ docId: `d${first + place}`, text: 'word', metadata: object })),
    );
  }
  return { ...tenant, indexId };
}

/** Counts by the canonical form of the values. */
function plainCounts(documents: readonly string[], field: string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const object of documents) {
    const value = fieldOf(JSON.parse(object) as Record<string, Json>, field);
    if (value === undefined) continue;
    const items = (Array.isArray(value) ? value : [value]) as readonly Json[];
    for (const one of new Set(items.map((item) => canonical(JSON.stringify(item)))))
      counts.set(one, (counts.get(one) ?? 0) + 1);
  }
  return counts;
}

const canonical = (value: string): string => canonicalItems(`[${value}]`)[0]!;

describe('counting values', () => {
  it('counts the documents that match, whatever the metadata and the condition', async () => {
    const fields = ['kind', 'é', 'kind.x', 'é.y'];
    await fc.assert(
      fc.asyncProperty(
        fc.array(metadata, { minLength: 1, maxLength: 80 }),
        fc.option(wherePart, { nil: undefined }),
        async (documents, where) => {
          const { context, indexId } = await filled(documents);
          const request = { fields, limit: 100, where };
          const counted = await stage.service.countValues(context(), indexId, request);
          const matching = documents.filter(
            (object) => where === undefined || meets(JSON.parse(object), JSON.parse(where)),
          );
          expect(counted.documents).toBe(matching.length);
          for (const [place, field] of fields.entries()) {
            const plain = plainCounts(matching, field);
            const { values, distinct } = counted.facets[place]!;
            expect(distinct).toBe(plain.size);
            expect(new Map(values.map(({ value, count }) => [canonical(value), count]))).toEqual(plain);
            const counts = values.map(({ count }) => count);
            expect(counts).toEqual(counts.toSorted((one, other) => other - one));
          }
        },
      ),
      { numRuns: 15 },
    );
  });

  it('reads an index in parts, replaced documents once', async () => {
    const objects = Array.from({ length: 400 }, (_, n) => `{"n":${n % 7},"pad":"${'x'.repeat(4_000)}"}`);
    const { context, indexId, tenant } = await filled(objects);
    await stage.service.upsertDocuments(context(), indexId, [
      { docId: 'd0', text: 'word', metadata: '{"n":[1,1,"new"]}' },
    ]);
    await stage.service.deleteDocument(context(), indexId, 'd7');
    const counted = await stage.service.countValues(context(), indexId, { fields: ['n', 'none'], limit: 3 });
    expect(counted).toEqual({
      documents: 399,
      facets: [
        {
          field: 'n',
          distinct: 8,
          values: [
            { value: '1', count: 58 },
            { value: '2', count: 57 },
            { value: '3', count: 57 },
          ],
        },
        { field: 'none', distinct: 0, values: [] },
      ],
    });
    const usage = await stage.catalog.usageTotals(tenant.id, '2000-01');
    expect(usage.documents).toBe(399);
  });

  it('names the field that has too many values', async () => {
    const many = Array.from({ length: 501 }, (_, n) => {
      const values = Array.from({ length: 200 }, (_value, place) => n * 200 + place);
      return `{"few":${n % 2},"many":[${values.join(',')}]}`;
    });
    const { context, indexId } = await filled(many);
    const count = (where?: string) =>
      stage.service.countValues(context(), indexId, { fields: ['few', 'many'], limit: 1, where });
    expect(await rejection(count())).toMatchObject({
      code: 'validation_error',
      message: expect.stringContaining('"many"') as string,
      issues: [{ path: 'fields.1', code: 'too_many_values' }],
    });
    // The bound is on the documents that match.
    expect((await count('{"few":0}')).facets).toMatchObject([
      { distinct: 1, values: [{ value: '0', count: 251 }] },
      { distinct: 50_200, values: [{ value: '0', count: 1 }] },
    ]);
  });

  it('ends at its deadline, and with its caller', async () => {
    const { context, indexId } = await filled(['{}', '{}']);
    const count = (overrides: Parameters<typeof context>[0]) =>
      stage.service.countValues(context(overrides), indexId, { fields: ['n'], limit: 1 });
    expect(await rejection(count({ deadlineMs: stage.clock.ms }))).toMatchObject({
      code: 'service_unavailable',
    });
    const left = new Error('left');
    expect(await rejection(count({ signal: AbortSignal.abort(left) }))).toBe(left);
  });

  it('finds no index of another tenant', async () => {
    const { indexId } = await filled(['{}']);
    const { context } = await stage.newTenant();
    const count = stage.service.countValues(context(), indexId, { fields: ['n'], limit: 1 });
    expect(await rejection(count)).toMatchObject({ code: 'not_found' });
  });
});
