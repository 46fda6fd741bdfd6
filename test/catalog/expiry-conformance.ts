/** Both catalogs treat documents that expire alike. */
import { describe, expect, it } from 'vitest';
import type { CatalogUnderTest } from './conformance.ts';
import { DocumentWriter, month, newTenant } from '../support/stages/catalog-fixture.ts';

export function describeExpiry(current: () => CatalogUnderTest): void {
  const start = async (): Promise<DocumentWriter> => {
    const { catalog } = current();
    return DocumentWriter.start(catalog, (await newTenant(catalog)).id);
  };

  describe('documents that expire', () => {
    const at = 1_800_000_000_000;
    const commitAs = async (
      writer: DocumentWriter,
      expiries: Readonly<Record<string, number | undefined>>,
    ) => {
      const versions = await writer.versions(Object.keys(expiries));
      const expiring = versions.map(({ docId, ...version }) => {
        const expiresAtMs = expiries[docId];
        return { ...version, docId, ...(expiresAtMs === undefined ? {} : { expiresAtMs }) };
      });
      expect(await writer.commit(expiring)).toMatchObject({ outcome: 'committed' });
      return expiring;
    };
    const seen = async ({ catalog, index }: DocumentWriter, nowMs: number) => {
      const page = await catalog.listDocuments(index.id, { limit: 10, nowMs, bytesMax: 1_000_000 });
      const documents = page?.documents.map(({ docId }) => docId) ?? [];
      expect(await catalog.countDocuments(index.id, nowMs)).toEqual({
        documents: documents.length,
        chunks: documents.length,
      });
      return documents.join('');
    };

    it('are neither listed nor counted from that moment on, and each read says when they expire', async () => {
      const writer = await start();
      const { catalog, index } = writer;
      const versions = await commitAs(writer, { a: at, b: at + 1, c: undefined, d: -1 });
      const [a] = versions;
      const versionIds = versions.map(({ versionId }) => versionId);
      const first = await catalog.firstVersions(index.id, versionIds, { limit: 9, nowMs: at });
      expect(first).toEqual(versionIds.slice(1, 3));
      expect(await seen(writer, at - 1)).toBe('abc');
      expect(await seen(writer, at)).toBe('bc');
      expect(await seen(writer, at + 1)).toBe('c');
      expect(await catalog.findDocument(index.id, 'a')).toEqual(a);
      const resolved = { docId: 'a', metadata: '{}', chunkCount: 1, expiresAtMs: at };
      for (const read of [catalog.resolveVersions, catalog.readMetadata])
        expect(await read(index.id, [a!.versionId])).toEqual(new Map([[a!.versionId, resolved]]));
      const page = await catalog.listDocuments(index.id, { limit: 1, nowMs: at, bytesMax: 1 });
      expect(page).toEqual({
        documents: [{ docId: 'b', metadata: '{}', chunkCount: 1, expiresAtMs: at + 1 }],
        hasMore: true,
      });
    });

    it('lose the expiry when they are replaced without one, and have the new one otherwise', async () => {
      const writer = await start();
      await commitAs(writer, { a: at, b: at, c: undefined });
      await commitAs(writer, { a: undefined, b: at + 5, c: at });
      expect(await seen(writer, at + 4)).toBe('ab');
      expect(await seen(writer, at + 5)).toBe('a');
    });

    it('are found to be ended, the first to expire first, and are stored until then', async () => {
      const writer = await start();
      const { catalog, index } = writer;
      const { tenantId } = index;
      const other = await DocumentWriter.start(catalog, tenantId);
      const versions = await commitAs(writer, { a: at, b: at - 1, c: at + 1, d: undefined });
      await commitAs(other, { a: at + 1 });
      const idsOf = (...places: number[]) => places.map((place) => versions[place]!.versionId);
      const mine = async (nowMs: number) =>
        (await catalog.expiredIndexes(nowMs)).filter((found) => found.tenantId === tenantId);
      expect(await mine(at - 2)).toEqual([]);
      expect(await mine(at)).toEqual([{ id: index.id, tenantId }]);
      expect((await mine(at + 1)).map(({ id }) => id).toSorted()).toEqual(
        [index.id, other.index.id].toSorted(),
      );
      expect(await catalog.expiredVersions(index.id, at, 10)).toEqual(idsOf(1, 0));
      expect(await catalog.expiredVersions(index.id, at, 1)).toEqual(idsOf(1));
      expect(await catalog.expiredVersions(index.id, at - 2, 10)).toEqual([]);
      const documents = async () => (await catalog.usageTotals(tenantId, month)).documents;
      expect(await documents()).toBe(5);
      const today = new Date().toISOString().slice(0, 10);
      const ended = await catalog.commitDeleteVersions({
        tenantId,
        indexId: index.id,
        versionIds: idsOf(1, 0),
        usage: { tenantId, month },
      });
      expect(ended).toMatchObject({ outcome: 'committed', died: [{}, {}] });
      expect(await documents()).toBe(3);
      expect(await catalog.usageDays(tenantId, '2000-01-01', today)).toEqual([]);
      expect(await catalog.expiredVersions(index.id, at, 10)).toEqual([]);
      expect(await mine(at)).toEqual([]);
      await catalog.deleteIndex(tenantId, index.id);
      expect(await catalog.expiredVersions(index.id, at + 1, 10)).toEqual([]);
      expect(await mine(at + 1)).toEqual([{ id: other.index.id, tenantId }]);
    });
  });
}
