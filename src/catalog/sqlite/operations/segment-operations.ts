/** Writes on segments. */
import type { NewSegment, SwapSegmentsInput } from '../../contract.ts';
import { ServiceError, assertInvariant } from '../../../errors.ts';
import type { Connection } from '../connection.ts';
import { indexKeyById } from './statements.ts';

/** `segment_id` of a dead version whose record a merge dropped. Ids start at 1. */
const noSegment = 0;

export function segmentOperations(connection: Connection) {
  const selectKey = indexKeyById(connection);
  const insertSegment = connection.prepare(
    "INSERT INTO segments (id, index_key, blob, state) VALUES (?, ?, ?, 'active')",
  );
  const seal = connection.prepare(
    "UPDATE segments SET state = 'sealed', records_sealed = ? WHERE id = ? AND state = 'active'",
  );
  const segmentOfIndex = connection
    .prepare<[number, number], number>('SELECT 1 FROM segments WHERE id = ? AND index_key = ?')
    .pluck();
  const move = connection.prepare(
    'UPDATE versions SET segment_id = ?, record = ? WHERE version_id = ? AND index_key = ?',
  );
  const liveLeftBehind = connection
    .prepare<[number, number], number>(
      'SELECT count(*) FROM versions WHERE index_key = ? AND segment_id = ? AND died = 0',
    )
    .pluck();
  const detachDead = connection.prepare(
    `UPDATE versions SET segment_id = ${noSegment}, record = 0 WHERE index_key = ? AND segment_id = ?`,
  );
  const deleteSegment = connection.prepare('DELETE FROM segments WHERE id = ? AND index_key = ?');

  const indexKeyOf = (indexId: string): number => {
    const indexKey = selectKey.get(indexId);
    if (indexKey === undefined) throw new ServiceError('not_found', 'the index does not exist');
    return indexKey;
  };

  return {
    createSegment({ id, indexId, blob }: NewSegment): void {
      insertSegment.run(id, indexKeyOf(indexId), blob);
    },

    sealSegment(segmentId: number, records: number): void {
      if (seal.run(records, segmentId).changes === 0) {
        throw new ServiceError('not_found', 'there is no such active segment');
      }
    },

    swapSegments({ indexId, removedSegmentIds, moves }: SwapSegmentsInput): void {
      const indexKey = indexKeyOf(indexId);
      const removed = new Set(removedSegmentIds);
      for (const segmentId of new Set(moves.map((item) => item.to.segmentId))) {
        assertInvariant(
          !removed.has(segmentId) && segmentOfIndex.get(segmentId, indexKey) !== undefined,
          `records move to segment ${segmentId}, which the index does not keep`,
        );
      }
      // Nothing moves where the version has been forgotten since the merge began.
      for (const { versionId, to } of moves) move.run(to.segmentId, to.record, versionId, indexKey);
      for (const segmentId of removed) {
        assertInvariant(
          liveLeftBehind.get(indexKey, segmentId) === 0,
          `segment ${segmentId} still holds live versions`,
        );
        detachDead.run(indexKey, segmentId);
        assertInvariant(
          deleteSegment.run(segmentId, indexKey).changes === 1,
          `segment ${segmentId} is not one of this index`,
        );
      }
    },
  };
}
