import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { StoredDocument } from '../../src/catalog/contract.ts';
import type { CatalogUnderTest } from './conformance.ts';
import { DocumentWriter, month, newIndex, newTenant, usageOf } from '../support/stages/catalog-fixture.ts';

export function describeDocuments(current: () => CatalogUnderTest): void {
  const start = async (): Promise<DocumentWriter> => {
    const { catalog } = current();
    return DocumentWriter.start(catalog, (await newTenant(catalog)).id);
  };

  describe('identifiers', () => {
    it('increase and are never handed out twice, over restarts too', async () => {
      const seen: number[] = [];
      for (let round = 0; round < 3; round++) {
        const { catalog } = current();
        const batches = await Promise.all([1, 50, 5000, 0, 7].map((count) => catalog.allocateIds(count)));
        expect(batches.map((ids) => ids.length)).toEqual([1, 50, 5000, 0, 7]);
        seen.push(...batches.flat());
        await current().reopen();
      }
      for (const [place, id] of seen.entries()) expect(id).toBeGreaterThan(seen[place - 1] ?? 0);
    });
  });

  describe('documents', () => {
    it('are resolved by version with the metadata as it was given', async () => {
      const writer = await start();
      const metadata = '{"a": [1.0,null,"\u{1f600}\\u0000"],  "__proto__": {"x":1}}';
      const [version] = await writer.upsert(['doc'], metadata);
      const versionId = version?.versionId ?? 0;
      const resolved = await writer.catalog.resolveVersions(writer.index.id, [versionId, 2 ** 52]);
      expect(resolved).toEqual(new Map([[versionId, { docId: 'doc', metadata, chunkCount: 1 }]]));
    });

    it('have ids that are compared exactly', async () => {
      const writer = await start();
      const docIds = ['a', 'A', 'a ', 'é', 'e\u0301', 'a\0', '\0', '\u{1f600}'.repeat(255), '..', "'; --"];
      const versions = await writer.upsert(docIds);
      const resolved = await writer.catalog.resolveVersions(
        writer.index.id,
        versions.map(({ versionId }) => versionId),
      );
      expect([...resolved.values()].map(({ docId }) => docId)).toEqual(docIds);
      expect(await writer.catalog.countStored(writer.index.id, [...docIds, 'e'])).toBe(docIds.length);
      await expect(writer.upsert(['\ud800'])).rejects.toMatchObject({ code: 'validation_error' });
    });

    it('of another index are not resolved', async () => {
      const [mine, other] = [await start(), await start()];
      const [version] = await mine.upsert(['a']);
      expect(await mine.catalog.resolveVersions(other.index.id, [version?.versionId ?? 0])).toEqual(
        new Map(),
      );
      const documents = await mine.versions(['b']);
      const theirs = { tenantId: other.index.tenantId };
      expect(await mine.commit(documents, theirs)).toEqual({ outcome: 'index_missing' });
    });

    it('deleted by version die in one commit, but for those that were replaced', async () => {
      const writer = await start();
      const { tenantId, id: indexId } = writer.index;
      const first = await writer.upsert(['a', 'b', 'c', 'd']);
      await writer.upsert(['b']);
      const remove = (
        versionIds: readonly number[],
        of: Partial<Record<'indexId' | 'tenantId', string>> = {},
      ) =>
        writer.catalog.commitDeleteVersions({
          tenantId,
          indexId,
          ...of,
          versionIds,
          usage: usageOf(of.tenantId ?? tenantId),
        });
      const ids = first.map(({ versionId }) => versionId);
      expect(await remove(ids, { indexId: randomUUID() })).toEqual({ outcome: 'index_missing' });
      expect(await remove(ids, { tenantId: randomUUID() })).toEqual({ outcome: 'index_missing' });
      const deleted = await remove([...ids.slice(0, 3), 999_999_999]);
      if (deleted.outcome !== 'committed') throw new Error(deleted.outcome);
      expect(deleted.generation).toBe(3);
      const { segmentId } = writer;
      expect(deleted.died.toSorted((one, other) => one.record - other.record)).toEqual([
        { docId: 'a', versionId: ids[0], segmentId, record: first[0]?.record },
        { docId: 'c', versionId: ids[2], segmentId, record: first[2]?.record },
      ]);
      expect(await remove(ids.slice(0, 3))).toEqual({ outcome: 'absent' });
      expect(await writer.catalog.countStored(indexId, ['a', 'b', 'c', 'd'])).toBe(2);
      expect((await writer.catalog.usageTotals(tenantId, month)).documents).toBe(2);
      expect((await writer.catalog.loadIndexState(indexId)).generation).toBe(3);
      // A version of another index is not found.
      expect(await remove(ids.slice(3), { indexId: (await newIndex(writer.catalog, tenantId)).id })).toEqual({
        outcome: 'absent',
      });
      expect(await writer.catalog.countStored(indexId, ['d'])).toBe(1);
    });

    it('dead stay resolvable until they are forgotten', async () => {
      const writer = await start();
      const ids = Array.from({ length: 1500 }, (_, place) => `doc ${place}`);
      const first = await writer.upsert(ids);
      await writer.upsert(ids);
      await writer.delete('doc 0');
      const oldest = first.map(({ versionId }) => versionId);
      expect((await writer.catalog.resolveVersions(writer.index.id, oldest)).size).toBe(1500);
      expect(await writer.catalog.forgetDeadVersions(writer.index.id, 1)).toBe(0);
      expect(await writer.catalog.forgetDeadVersions(writer.index.id, 2)).toBe(1500);
      expect(await writer.catalog.forgetDeadVersions(writer.index.id, 9)).toBe(1);
      expect((await writer.catalog.resolveVersions(writer.index.id, oldest)).size).toBe(0);
      const { versions } = await writer.catalog.loadIndexState(writer.index.id);
      expect(versions.versionIds).toHaveLength(1499);
    });

    it('committed at once by many callers get one generation each', async () => {
      const writer = await start();
      const batches = await Promise.all(
        Array.from({ length: 100 }, (_, place) => writer.versions([`${place}`, 'shared'])),
      );
      const results = await Promise.all(batches.map((documents) => writer.commit(documents)));
      const generations = results.map((result) => (result.outcome === 'committed' ? result.generation : 0));
      // The catalog decides the order.
      expect(generations.toSorted((a, b) => a - b)).toEqual(
        Array.from({ length: 100 }, (_, place) => place + 1),
      );
      const totals = await writer.catalog.usageTotals(writer.index.tenantId, month);
      expect(totals.documents).toBe(101);
    });

    it('named twice in one commit are refused, and the commits beside it are not', async () => {
      const writer = await start();
      const [good, twice, also] = await Promise.all(
        [['a'], ['b', 'b'], ['c']].map((docIds) => writer.versions(docIds)),
      );
      const settled = await Promise.allSettled(
        [good, twice, also].map((batch) => writer.commit(batch ?? [])),
      );
      expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
      expect(await writer.catalog.countStored(writer.index.id, ['a', 'b', 'c'])).toBe(2);
      expect((await writer.catalog.loadIndexState(writer.index.id)).generation).toBe(2);
    });
  });

  describe('a version that names the one that it replaces', () => {
    it('takes its place while it is live, and no other one, or none', async () => {
      const writer = await start();
      const [first] = await writer.upsert(['a'], '{"n":1}');
      const replacing = async (replaces: number, docId = 'a') => {
        const [version] = await writer.versions([docId], '{"n":2}');
        return writer.commit([{ ...version!, replaces }], {
          usage: usageOf(writer.index.tenantId, { requests: 1 }),
        });
      };
      expect(await replacing(first!.versionId)).toMatchObject({
        outcome: 'committed',
        generation: 2,
        died: [{ docId: 'a', versionId: first!.versionId }],
      });
      const before = await writer.catalog.loadIndexState(writer.index.id);
      expect(await replacing(first!.versionId)).toEqual({ outcome: 'document_changed' });
      expect(await replacing(2 ** 52)).toEqual({ outcome: 'document_changed' });
      const live = await writer.catalog.findDocument(writer.index.id, 'a');
      await writer.delete('a');
      expect(await replacing(live!.versionId)).toEqual({ outcome: 'document_changed' });
      expect(before.generation).toBe(2);
      expect((await writer.catalog.loadIndexState(writer.index.id)).generation).toBe(3);
      // Refused commits charge nothing.
      expect((await writer.catalog.usageTotals(writer.index.tenantId, month)).requests).toBe(1);
      await writer.catalog.deleteIndex(writer.index.tenantId, writer.index.id);
      expect(await replacing(live!.versionId)).toEqual({ outcome: 'index_missing' });
    });

    it('refuses none of those that are committed beside it', async () => {
      const writer = await start();
      const [first] = await writer.upsert(['a', 'b']);
      const batches = await Promise.all(Array.from({ length: 8 }, () => writer.versions(['a'])));
      const others = await writer.versions(['b', 'c']);
      const results = await Promise.all([
        ...batches.map(([version]) => writer.commit([{ ...version!, replaces: first!.versionId }])),
        writer.commit(others),
      ]);
      const outcomes = results.map(({ outcome }) => outcome).toSorted();
      expect(outcomes).toEqual([
        ...Array.from({ length: 2 }, () => 'committed'),
        ...Array.from({ length: 7 }, () => 'document_changed'),
      ]);
      expect(results.at(-1)).toMatchObject({ outcome: 'committed' });
      expect(await writer.catalog.countStored(writer.index.id, ['a', 'b', 'c'])).toBe(3);
    });
  });

  describe('stored documents', () => {
    const nowMs = 1_800_000_000_000;
    const large = 1_000_000;
    const listAll = async (writer: DocumentWriter, limit: number): Promise<readonly StoredDocument[]> => {
      const listed: StoredDocument[] = [];
      for (let after: string | undefined; ;) {
        const page = await writer.catalog.listDocuments(writer.index.id, {
          limit,
          after,
          nowMs,
          bytesMax: large,
        });
        listed.push(...(page?.documents ?? []));
        expect(page?.documents.length).toBeLessThanOrEqual(limit);
        if (page?.hasMore !== true) return listed;
        after = listed.at(-1)?.docId;
      }
    };

    it('are listed by the bytes of their ids, each as it is now', async () => {
      const writer = await start();
      const docIds = [
        'b',
        'a',
        'A',
        'a ',
        'é',
        'e\u0301',
        'a\0',
        '\0',
        '\uffff',
        '\u{1f600}',
        '10',
        '9',
        "'; --",
      ];
      await writer.upsert(docIds, '{"n": 1.0}');
      await writer.upsert(['a', 'new'], '{"n":2}');
      await writer.delete('10');
      const stored = [...docIds.filter((docId) => docId !== '10'), 'new'].toSorted((one, other) =>
        Buffer.compare(Buffer.from(one), Buffer.from(other)),
      );
      const expected = stored.map((docId) => ({
        docId,
        metadata: ['a', 'new'].includes(docId) ? '{"n":2}' : '{"n": 1.0}',
        chunkCount: 1,
      }));
      for (const limit of [1, 2, 5, stored.length, 1000])
        expect(await listAll(writer, limit)).toEqual(expected);
      // A page that is exactly full, and one with a document more.
      const { id } = writer.index;
      const full = await writer.catalog.listDocuments(id, { limit: stored.length, nowMs, bytesMax: large });
      expect(full?.hasMore).toBe(false);
      const short = await writer.catalog.listDocuments(id, {
        limit: stored.length - 1,
        nowMs,
        bytesMax: large,
      });
      expect(short?.hasMore).toBe(true);
      const beyond = { limit: 5, after: stored.at(-1)!, nowMs, bytesMax: large };
      expect(await writer.catalog.listDocuments(id, beyond)).toEqual({ documents: [], hasMore: false });
    });

    it('of given versions are the first by the bytes of their ids, also those that have died since', async () => {
      const writer = await start();
      const { catalog, index } = writer;
      const docIds = ['\u{1f600}', '\uffff', 'b', 'a', 'a\0'];
      const versionIds = (await writer.upsert(docIds)).map(({ versionId }) => versionId);
      await writer.upsert(['a']);
      await writer.delete('b');
      const first = async (after: string | undefined, limit: number, of = versionIds) =>
        (await catalog.firstVersions(index.id, of, { after, limit, nowMs })).map(
          (versionId) => docIds[versionIds.indexOf(versionId)],
        );
      const sorted = ['a', 'a\0', 'b', '\uffff', '\u{1f600}'];
      expect(await first(undefined, 9)).toEqual(sorted);
      expect(await first('a', 2)).toEqual(sorted.slice(1, 3));
      expect(await first('b', 9, versionIds.slice(0, 3))).toEqual(sorted.slice(3));
      expect(await first('\u{1f600}', 9)).toEqual([]);
      expect(await first(undefined, 9, [])).toEqual([]);
      const other = await start();
      const order = { limit: 9, nowMs };
      expect(await catalog.firstVersions(other.index.id, versionIds, order)).toEqual([]);
      await catalog.deleteIndex(index.tenantId, index.id);
      expect(await catalog.firstVersions(index.id, versionIds, order)).toEqual([]);
    });

    it('fill a page up to a bound of bytes, which one alone may exceed', async () => {
      const writer = await start();
      const metadata = `{"text":"${'é'.repeat(100)}"}`;
      await writer.upsert(['a', 'b', 'c', 'd'], metadata);
      const bytes = Buffer.byteLength(metadata);
      const pageOf = async (bytesMax: number, limit = 10) => {
        const page = await writer.catalog.listDocuments(writer.index.id, { limit, nowMs, bytesMax });
        return [page?.documents.map(({ docId }) => docId).join(''), page?.hasMore];
      };
      expect(await pageOf(1)).toEqual(['a', true]);
      expect(await pageOf(bytes)).toEqual(['a', true]);
      expect(await pageOf(bytes + 1)).toEqual(['ab', true]);
      expect(await pageOf(3 * bytes)).toEqual(['abc', true]);
      expect(await pageOf(3 * bytes + 1)).toEqual(['abcd', false]);
      expect(await pageOf(3 * bytes, 2)).toEqual(['ab', true]);
    });

    it('that stay are on exactly one page, although others come and go', async () => {
      const writer = await start();
      const name = (number: number) => String(number).padStart(3, '0');
      const lasting = Array.from({ length: 50 }, (_, place) => name(place * 2));
      await writer.upsert(lasting);
      const listedAll = new AbortController();
      const churn = (async () => {
        for (let turn = 1; !listedAll.signal.aborted; turn += 1) {
          const passing = [name((turn * 14 + 1) % 100), name((turn * 38 + 1) % 100)];
          await writer.upsert([...new Set([...passing, lasting[turn % 50]!])]);
          await writer.delete(passing[0]!);
        }
      })();
      for (let round = 0; round < 5; round += 1) {
        const listed = (await listAll(writer, 3)).map(({ docId }) => docId);
        expect(listed.filter((docId) => lasting.includes(docId))).toEqual(lasting);
        expect(new Set(listed).size).toBe(listed.length);
      }
      listedAll.abort();
      await churn;
    });

    it('are counted with their chunks', async () => {
      const writer = await start();
      const { id } = writer.index;
      expect(await writer.catalog.countDocuments(id, nowMs)).toEqual({ documents: 0, chunks: 0 });
      const versions = await writer.versions(['a', 'b', 'c']);
      await writer.commit(versions.map((version, place) => ({ ...version, chunkCount: 1 + place * 10 })));
      expect(await writer.catalog.countDocuments(id, nowMs)).toEqual({ documents: 3, chunks: 33 });
      await writer.upsert(['c']);
      await writer.delete('a');
      expect(await writer.catalog.countDocuments(id, nowMs)).toEqual({ documents: 2, chunks: 12 });
    });

    it('of an index that is not there are neither listed, found nor counted', async () => {
      const writer = await start();
      await writer.upsert(['a']);
      const { id, tenantId } = writer.index;
      await writer.catalog.deleteIndex(tenantId, id);
      expect(await writer.catalog.listDocuments(id, { limit: 1, nowMs, bytesMax: 1 })).toBeUndefined();
      expect(await writer.catalog.findDocument(id, 'a')).toBeUndefined();
      expect(await writer.catalog.countDocuments(id, nowMs)).toBeUndefined();
    });
  });

  describe('stored-document allowance', () => {
    it('is counted over all indexes of the tenant, replaced documents once', async () => {
      const first = await start();
      const second = await DocumentWriter.start(first.catalog, first.index.tenantId);
      await first.upsert(['a', 'b']);
      const tooMany = await second.versions(['a', 'b']);
      expect(await second.commit(tooMany, { documentsMax: 3 })).toEqual({
        outcome: 'document_allowance_exceeded',
        documents: 2,
      });
      expect(await second.commit(tooMany.slice(0, 1), { documentsMax: 3 })).toMatchObject({
        outcome: 'committed',
      });
      const replacing = await first.versions(['a', 'b']);
      expect(await first.commit(replacing, { documentsMax: 3 })).toMatchObject({ outcome: 'committed' });
      expect(await first.catalog.countStored(second.index.id, ['a', 'b'])).toBe(1);
    });

    it('refuses nothing that only replaces, even above a lowered allowance', async () => {
      const writer = await start();
      await writer.upsert(['a', 'b', 'c']);
      expect(await writer.commit(await writer.versions(['a', 'c']), { documentsMax: 1 })).toMatchObject({
        outcome: 'committed',
      });
      expect(await writer.commit(await writer.versions(['a', 'd']), { documentsMax: 1 })).toMatchObject({
        outcome: 'document_allowance_exceeded',
      });
    });

    it('holds against commits that arrive together', async () => {
      const writer = await start();
      const batches = await Promise.all(
        Array.from({ length: 20 }, (_, place) => writer.versions([`${place} a`, `${place} b`])),
      );
      const results = await Promise.all(batches.map((batch) => writer.commit(batch, { documentsMax: 13 })));
      const committed = results.filter(({ outcome }) => outcome === 'committed');
      expect(committed).toHaveLength(6);
      const usage = await writer.catalog.usageTotals(writer.index.tenantId, month);
      expect(usage.documents).toBe(12);
    });
  });
}
