/** Documents that expire, by a clock that the test drives. */
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { DocumentExpiry } from '../../src/service/contract.ts';
import {
  documentsOf,
  openServiceStage,
  rejection,
  type ServiceStage,
  type TenantStage,
} from '../support/stages/service-stage.ts';

let stage: ServiceStage;
beforeAll(async () => {
  stage = await openServiceStage();
});
afterAll(() => stage[Symbol.asyncDispose]());

const second = 1_000;
const all = { limit: 100, after: undefined };

async function newIndex(host = stage) {
  const tenant = await host.newTenant({ requestsPerMinute: 1_000_000 });
  const indexId = await tenant.createIndex();
  return { ...tenant, indexId, ...requestsOf(host, tenant, indexId) };
}

function requestsOf(host: ServiceStage, { context, search }: TenantStage, indexId: string) {
  const { service } = host;
  return {
    context,
    put: (docIds: readonly string[], expiry?: DocumentExpiry) =>
      service.upsertDocuments(
        context(),
        indexId,
        documentsOf(Object.fromEntries(docIds.map((docId) => [docId, `word ${docId}`])), '{"kind":["x"]}'),
        expiry,
      ),
    change: (docId: string, expiresAtMs: number | null) =>
      service.updateDocument(context(), indexId, docId, { expiresAtMs }),
    stored: async () => (await service.usage(context())).usage.documents,
    /** The ids that each kind of answer has, or how many. */
    answers: async () => {
      const query = { query: 'word', returnComponents: false, groupByDocument: true, topK: 100 };
      const [grouped] = (await service.query(context(), indexId, [query])).results;
      const { documents } = await service.listDocuments(context(), indexId, all);
      const ids = (found: readonly { readonly docId: string }[]) =>
        found
          .map(({ docId }) => docId)
          .toSorted()
          .join('');
      return {
        search: ids((await search(indexId, 'word', { topK: 100 })).results),
        query: 'documents' in grouped! ? ids(grouped.documents) : '',
        list: ids(documents),
        count: (await service.countDocuments(context(), indexId)).documents,
        facets: (await service.countValues(context(), indexId, { fields: ['kind'], limit: 1 })).documents,
      };
    },
  };
}

const only = (docIds: string) => ({
  search: docIds,
  query: docIds,
  list: docIds,
  count: docIds.length,
  facets: docIds.length,
});

describe('a document that expires', () => {
  it('leaves its place to others in a search for few results', async () => {
    const { put, search, indexId } = await newIndex();
    const at = stage.clock.ms + second;
    const expiring = Array.from({ length: 40 }, (_, n) => `a${n}`);
    await put(expiring, { expiresAtMs: at });
    await put(['z', 'y']);
    const found = async () =>
      (await search(indexId, 'word a3 a4', { topK: 2 })).results.map(({ docId }) => docId);
    const ranAgain = () => stage.service.statistics().repeats.expired;
    const before = ranAgain();
    await found();
    expect(ranAgain()).toBe(before);
    stage.clock.ms = at;
    for (const _again of [1, 2]) {
      expect((await found()).toSorted()).toEqual(['y', 'z']);
      expect(ranAgain()).toBe(before + 1);
    }
  });

  it('cannot be changed, is deleted as absent, and is not counted by a deletion of those that match', async () => {
    const { put, change, answers, context, indexId } = await newIndex();
    const at = stage.clock.ms + second;
    await put(['a', 'b', 'c'], { expiresAtMs: at });
    await put(['d']);
    stage.clock.ms = at;
    expect(await rejection(change('a', null))).toMatchObject({ code: 'not_found' });
    expect(await stage.service.deleteDocument(context(), indexId, 'a')).toBe(false);
    const where = { where: '{"kind":{"in":[["x"]]}}', limit: 100, dryRun: false };
    expect(await stage.service.deleteMatching(context(), indexId, where)).toEqual({
      deleted: 1,
      more: false,
    });
    expect(await answers()).toEqual(only(''));
  });

  it('is ended by upkeep, also in an index that is not open, and frees the allowance then', async () => {
    const { put, stored, context, indexId, tenant } = await newIndex();
    const at = stage.clock.ms + second;
    const many = Array.from({ length: 50 }, (_, n) => `d${n}`);
    await put(many, { expiresAtMs: at });
    stage.clock.ms = at;
    expect(await stored()).toBe(50);
    const before = await stage.catalog.usageTotals(tenant.id, '2000-01');
    expect(before.requests).toBe(0);
    await stage.service.maintain();
    expect(await stored()).toBe(0);
    expect(await stage.catalog.expiredVersions(indexId, at, 10)).toEqual([]);
    const { usage } = await stage.service.usage(context());
    expect(usage).toMatchObject({ documents: 0, requests: 1, documentUpserts: 50 });
    expect(stage.errors).toEqual([]);
  });

  it('holds up a search until its deadline at most, when very many are ended', async () => {
    const { put, search, context, indexId } = await newIndex();
    const expiresAtMs = stage.clock.ms + second;
    await put(['a'], { expiresAtMs });
    stage.clock.ms = expiresAtMs;
    const ending = Promise.withResolvers<void>();
    const commit = stage.catalog.commitDeleteVersions.bind(stage.catalog);
    const held = vi.spyOn(stage.catalog, 'commitDeleteVersions').mockImplementationOnce(async (input) => {
      await ending.promise;
      return commit(input);
    });
    try {
      const deadlineMs = stage.clock.ms + 50;
      const query = { query: 'word', returnComponents: false };
      expect(await rejection(stage.service.search(context({ deadlineMs }), indexId, query))).toMatchObject({
        code: 'service_unavailable',
        message: 'documents that have expired are being removed',
      });
    } finally {
      ending.resolve();
      held.mockRestore();
    }
    expect((await search(indexId, 'word')).results).toEqual([]);
  });

  it('does not come back with a restart or a merge', async () => {
    const first = await openServiceStage();
    const host = await newIndex(first);
    const at = first.clock.ms + second;
    await host.put(['a', 'b'], { expiresAtMs: at });
    await host.put(['c']);
    await first.service.drain();
    const again = await openServiceStage(first.directory);
    try {
      again.clock.ms = at - 1;
      const requests = requestsOf(again, { ...host, ...tenantOf(again, host) }, host.indexId);
      expect(await requests.answers()).toEqual(only('abc'));
      again.clock.ms = at;
      await again.service.maintain();
      again.clock.ms = at + 86_400 * second;
      await again.service.maintain();
      expect(await requests.answers()).toEqual(only('c'));
      const { segments } = await again.service.describeIndex(requests.context(), host.indexId);
      // Erased: no record of them is left.
      expect(segments.reduce((sum, { records }) => sum + records, 0)).toBe(1);
      expect(again.errors).toEqual([]);
    } finally {
      await again[Symbol.asyncDispose]();
    }
  });

  it('gives the answers of a plain model, whatever is written and whenever upkeep runs', async () => {
    const docId = fc.constantFrom('a', 'b', 'c', 'd');
    const expiresIn = fc.option(fc.nat({ max: 4 }), { nil: null });
    const step = fc.oneof(
      fc.record({ kind: fc.constant('put' as const), docId, expiresIn }),
      fc.record({ kind: fc.constant('change' as const), docId, expiresIn }),
      fc.record({ kind: fc.constant('delete' as const), docId }),
      fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 3 }) }),
      fc.record({ kind: fc.constant('maintain' as const) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 20 }), async (steps) => {
        const { put, change, answers, context, indexId } = await newIndex();
        const model = new Map<string, number>();
        const live = () => [...model].filter(([, at]) => at > stage.clock.ms).map(([id]) => id);
        for (const next of steps) {
          if (next.kind === 'wait') stage.clock.ms += next.ms;
          else if (next.kind === 'maintain') await stage.service.maintain();
          else if (next.kind === 'delete') {
            const deleted = await stage.service.deleteDocument(context(), indexId, next.docId);
            expect(deleted).toBe(live().includes(next.docId));
            model.delete(next.docId);
          } else {
            const at = next.expiresIn === null ? Infinity : stage.clock.ms + next.expiresIn;
            const expiresAtMs = at === Infinity ? null : at;
            if (next.kind === 'put') await put([next.docId], expiresAtMs === null ? {} : { expiresAtMs });
            else if (live().includes(next.docId)) await change(next.docId, expiresAtMs);
            else
              expect(await rejection(change(next.docId, expiresAtMs))).toMatchObject({ code: 'not_found' });
            if (next.kind === 'put' || live().includes(next.docId)) model.set(next.docId, at);
          }
          expect(await answers()).toEqual(only(live().toSorted().join('')));
        }
      }),
      { numRuns: 20 },
    );
  });
});

/** The same tenant, before a service that was started again. */
function tenantOf(
  host: ServiceStage,
  { tenant, context }: TenantStage,
): Pick<TenantStage, 'context' | 'search'> {
  const contextNow: TenantStage['context'] = (overrides) =>
    context({ startedAtMs: host.clock.ms, deadlineMs: host.clock.ms + 60_000, ...overrides });
  return {
    context: contextNow,
    search: (indexId, query, more = {}) =>
      host.service.search(contextNow({ tenant }), indexId, { query, returnComponents: false, ...more }),
  };
}
