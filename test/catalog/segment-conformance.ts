import { describe, expect, it } from 'vitest';
import type { CatalogUnderTest } from './conformance.ts';
import { DocumentWriter, newSegment, newTenant } from '../support/stages/catalog-fixture.ts';

export function describeSegments(current: () => CatalogUnderTest): void {
  const start = async (): Promise<DocumentWriter> => {
    const { catalog } = current();
    return DocumentWriter.start(catalog, (await newTenant(catalog)).id);
  };

  describe('segments', () => {
    it('take no record beyond where they were sealed, nor for another index', async () => {
      const [writer, other] = [await start(), await start()];
      const documents = await writer.versions(['a', 'b', 'c']);
      await writer.catalog.sealSegment(writer.segmentId, 2);
      expect(await writer.commit(documents.slice(0, 2))).toMatchObject({ outcome: 'committed' });
      await expect(writer.commit(documents.slice(2))).rejects.toThrow(/bug/);
      await expect(other.commit(documents.slice(2))).rejects.toThrow(/bug/);
    });

    it('of an index that is gone cannot be made or sealed', async () => {
      const { catalog, index, segmentId } = await start();
      await catalog.deleteIndex(index.tenantId, index.id);
      const segment = { id: 2 ** 50, indexId: index.id, blob: 'x' };
      await expect(catalog.createSegment(segment)).rejects.toMatchObject({ code: 'not_found' });
      await expect(catalog.sealSegment(segmentId, 0)).rejects.toMatchObject({ code: 'not_found' });
    });

    it('list their versions by segment and record', async () => {
      const writer = await start();
      await writer.upsert(['a', 'b']);
      const second = new DocumentWriter(
        writer.catalog,
        writer.index,
        await newSegment(writer.catalog, writer.index.id),
      );
      const late = await writer.versions(['d']);
      await second.upsert(['c']);
      await writer.commit(late);
      const { segments, versions } = await writer.catalog.loadIndexState(writer.index.id);
      expect(segments.map(({ id }) => id)).toEqual([writer.segmentId, second.segmentId]);
      expect([...versions.segmentIds]).toEqual([
        writer.segmentId,
        writer.segmentId,
        writer.segmentId,
        second.segmentId,
      ]);
      expect([...versions.records]).toEqual([0, 1, 2, 0]);
      expect([...versions.born]).toEqual([1, 1, 3, 2]);
    });
  });

  describe('a merge', () => {
    it('ignores moves of versions that were forgotten meanwhile', async () => {
      const writer = await start();
      const { catalog, index } = writer;
      const [a] = await writer.upsert(['a']);
      await writer.delete('a');
      await catalog.forgetDeadVersions(index.id, 9);
      const target = await newSegment(catalog, index.id);
      await catalog.swapSegments({
        indexId: index.id,
        removedSegmentIds: [writer.segmentId],
        moves: [{ versionId: a?.versionId ?? 0, to: { segmentId: target, record: 0 } }],
      });
      expect((await catalog.loadIndexState(index.id)).versions.versionIds).toHaveLength(0);
    });

    it('that would leave a live document behind changes nothing', async () => {
      const writer = await start();
      const { catalog, index } = writer;
      const [a] = await writer.upsert(['a', 'b']);
      const target = await newSegment(catalog, index.id);
      const before = await catalog.loadIndexState(index.id);
      const moves = [{ versionId: a?.versionId ?? 0, to: { segmentId: target, record: 0 } }];
      const removedSegmentIds = [writer.segmentId];
      await expect(catalog.swapSegments({ indexId: index.id, removedSegmentIds, moves })).rejects.toThrow(
        /live/,
      );
      expect(await catalog.loadIndexState(index.id)).toEqual(before);
    });

    it('of an index that is gone is refused', async () => {
      const { catalog, index, segmentId } = await start();
      await catalog.deleteIndex(index.tenantId, index.id);
      const swap = { indexId: index.id, removedSegmentIds: [segmentId], moves: [] };
      await expect(catalog.swapSegments(swap)).rejects.toMatchObject({ code: 'not_found' });
    });
  });
}
