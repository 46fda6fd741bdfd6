/** Pages of the documents that a condition matches, on the real catalog and engine, against a plain list. */
import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { meets, metadata, wherePart } from '../../support/conditions.ts';
import { openServiceStage, rejection, type ServiceStage } from '../../support/stages/service-stage.ts';

let stage: ServiceStage;
beforeAll(async () => {
  stage = await openServiceStage();
});
afterAll(() => stage[Symbol.asyncDispose]());

const documentsMax = 50;
const docIdOf = (place: number): string => `d${String(place).padStart(5, '0')}`;

async function filled(documents: readonly string[]) {
  const tenant = await stage.newTenant({ documents: documents.length });
  const indexId = await tenant.createIndex();
  for (let first = 0; first < documents.length; first += documentsMax) {
    const batch = documents.slice(first, first + documentsMax).map((object, place) => ({
      // The ids do not have the order in which the documents are stored.
      docId: docIdOf(documents.length - first - place),
      text: 'word',
      metadata: object,
    }));
    await stage.service.upsertDocuments(tenant.context(), indexId, batch);
  }
  const list = async (where: string, limit: number) => {
    const listed: string[] = [];
    for (let after: string | undefined; ;) {
      const page = await stage.service.listDocuments(tenant.context(), indexId, { where, limit, after });
      expect(page.documents.length).toBe(page.hasMore ? limit : page.documents.length);
      listed.push(...page.documents.map(({ docId }) => docId));
      if (!page.hasMore) return listed;
      after = listed.at(-1);
    }
  };
  return { ...tenant, indexId, list };
}

it('lists the documents that match, whatever the metadata and the condition', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(metadata, { minLength: 1, maxLength: 80 }),
      wherePart,
      fc.integer({ min: 1, max: 30 }),
      async (documents, where, limit) => {
        const { list } = await filled(documents);
        const matching = documents.flatMap((object, place) =>
          meets(JSON.parse(object), JSON.parse(where)) ? [docIdOf(documents.length - place)] : [],
        );
        expect(await list(where, limit)).toEqual(matching.toReversed());
      },
    ),
    { numRuns: 15 },
  );
});

it('lists more documents than the catalog reads at a time, and ends a page at 4 MiB of metadata', async () => {
  const objects = Array.from({ length: 4_200 }, (_, n) => `{"n":${n}}`);
  const { list, context, indexId } = await filled(objects);
  const expected = objects.slice(0, -1).map((_, place) => docIdOf(place + 1));
  expect(await list('{"n":{"gte":1}}', 1_000)).toEqual(expected);

  const large = await filled(Array.from({ length: 300 }, () => `{"pad":"${'x'.repeat(16_000)}"}`));
  const page = await stage.service.listDocuments(large.context(), large.indexId, {
    where: '{"pad":{"exists":true}}',
    limit: 300,
  });
  expect([page.documents.length, page.hasMore]).toEqual([Math.ceil(2 ** 22 / 16_010), true]);

  // The index is deleted while its documents are listed.
  const firstVersions = vi.spyOn(stage.catalog, 'firstVersions');
  firstVersions.mockImplementationOnce(async () => {
    await stage.service.deleteIndex(context(), indexId);
    return [];
  });
  expect(await rejection(list('{"n":{"gte":1}}', 10))).toMatchObject({ code: 'not_found' });
  firstVersions.mockRestore();
});
