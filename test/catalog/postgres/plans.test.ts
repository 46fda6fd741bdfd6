/**
 * No statement of a node reads a whole large table. That holds with many small indexes, with one index that is most of the catalog,
 * and with a plan that PostgreSQL keeps for all values. The server counts the rows that scans of whole tables read.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import type { ClusterCatalog } from '../../../src/catalog/cluster-contract.ts';
import { openPostgresCatalog } from '../../../src/catalog/postgres/open-catalog.ts';
import { deltaUpsert, newDelta, upsertDelta } from '../../support/cluster/delta-writer.ts';
import { newSharedDatabase, queryDatabase } from '../../support/cluster/servers.ts';
import { eventually } from '../../support/running/eventually.ts';
import { newTenant, usageOf } from '../../support/stages/catalog-fixture.ts';

const smallIndexes = 200;
const smallDocuments = 100;
/** More than a page of `changesSince`. */
const largeSegments = 6;
const largeDocuments = 8_000;
/** PostgreSQL makes a plan for all values from the sixth time on. */
const times = 7;
const largeTables = `'versions', 'placements'`;

/** The indexes 1 to `smallIndexes` have one segment each. The next index has all other segments. */
async function fill(url: string, tenantId: string): Promise<void> {
  const large = smallIndexes + 1;
  await queryDatabase(
    url,
    `INSERT INTO indexes (index_key, id, tenant_id, name, model, model_version, max_tokens, overlap_tokens,
        minimum_chunk_tokens, metadata_schema, status, created_at_ms, generation)
      OVERRIDING SYSTEM VALUE
      SELECT i, gen_random_uuid(), '${tenantId}', i::text::bytea, 'model', '1', 256, 32, 16, '{}', 'ready', 0, 1
      FROM generate_series(1, ${large}) i;
    INSERT INTO segments (id, index_key, blob, state, records_sealed)
      SELECT s, least(s, ${large}), 'blob ' || s, 'sealed',
        CASE WHEN s <= ${smallIndexes} THEN ${smallDocuments} ELSE ${largeDocuments} END
      FROM generate_series(1, ${smallIndexes + largeSegments}) s;
    INSERT INTO placements SELECT s.id, r, s.id * 100000 + r
      FROM segments s CROSS JOIN LATERAL generate_series(0, s.records_sealed - 1) r;
    INSERT INTO versions SELECT p.version_id, s.index_key, 1, 0, 1, 64, ('document ' || p.version_id)::bytea, '{}'
      FROM placements p JOIN segments s ON s.id = p.segment_id;
    SELECT setval('ids', 1000000000);
    ANALYZE`,
  );
}

/** Counted are all sessions that have ended. Before PostgreSQL 15 the server counts later than it answers. */
async function rowsOfScans(url: string): Promise<readonly unknown[]> {
  const planted = `planted_${randomUUID().replaceAll('-', '')}`;
  await queryDatabase(url, `CREATE TABLE ${planted} AS SELECT 1; SELECT count(*) FROM ${planted}`);
  const counted = `SELECT FROM pg_stat_user_tables WHERE relname = '${planted}' AND seq_scan > 0`;
  await eventually(async () => (await queryDatabase(url, counted)).length > 0);
  return await queryDatabase(
    url,
    `SELECT relname, seq_tup_read::integer AS rows FROM pg_stat_user_tables
      WHERE relname IN (${largeTables}) ORDER BY relname`,
  );
}

async function merge(catalog: ClusterCatalog, indexId: string, count: number): Promise<void> {
  const changes = await catalog.changesSince({ indexId, generation: -1, segmentIds: [] });
  if (changes === undefined || changes === 'reopen') throw new Error('the index is gone');
  const removedSegmentIds = changes.segments.slice(0, count).map(({ id }) => id);
  const moved = [...changes.versions.versionIds].filter((_id, row) =>
    removedSegmentIds.includes(changes.versions.segmentIds[row]!),
  );
  const { segment } = await newDelta(catalog, indexId, []);
  const lease = await catalog.acquireMergeLease(indexId, 'node', 60_000);
  const records = Uint32Array.from(moved.keys());
  await catalog.placeVersions(segment.id, { versionIds: Float64Array.from(moved), records });
  const swapped = await catalog.swapMerged({
    lease: lease!,
    removedSegmentIds,
    target: { ...segment, records: moved.length },
  });
  expect(swapped).toBe(true);
}

it('no statement reads all versions, or all places', async () => {
  const url = await newSharedDatabase();
  const keyPepper = randomBytes(32);
  const open = () => openPostgresCatalog({ url, keyPepper });
  let catalog = await open();
  const tenant = await newTenant(catalog, { documents: 1_000_000 });
  await fill(url, tenant.id);
  const ids = (await queryDatabase(url, 'SELECT id FROM indexes ORDER BY index_key')).map(
    ({ id }) => id as string,
  );
  const large = ids.at(-1)!;
  await catalog.close();
  catalog = await open();
  const before = await rowsOfScans(url);

  for (let time = 0; time < times; time += 1) {
    for (const indexId of [ids[time]!, large]) {
      const index = { tenantId: tenant.id, id: indexId };
      const generation = await upsertDelta(catalog, index, ['replaced', `new ${time}`]);
      await catalog.commitUpserts([
        deltaUpsert(index, await newDelta(catalog, indexId, ['replaced'])),
        deltaUpsert(index, await newDelta(catalog, indexId, ['replaced'])),
      ]);
      const usage = usageOf(tenant.id);
      await catalog.commitDelete({ tenantId: tenant.id, indexId, docId: `new ${time}`, usage });
      await catalog.commitDeleteVersions({ tenantId: tenant.id, indexId, versionIds: [1, 2, 3], usage });
      await catalog.countStored(indexId, ['replaced', randomUUID()]);
      await catalog.listDocuments(indexId, { limit: 5, after: 'document 1', nowMs: 0, bytesMax: 1000 });
      const live = await catalog.findDocument(indexId, 'replaced');
      await catalog.countDocuments(indexId, 0);
      const { segment, documents } = await newDelta(catalog, indexId, ['replaced']);
      const next = documents.map((version) => ({ ...version, replaces: live!.versionId, expiresAtMs: 1 }));
      await catalog.commitUpsert(deltaUpsert(index, { segment, documents: next }));
      await catalog.expiredIndexes(1);
      await catalog.expiredVersions(indexId, 1, 10);
      const changes = await catalog.changesSince({ indexId, generation: generation - 1, segmentIds: [] });
      if (typeof changes !== 'object') throw new Error('the index is gone');
      await catalog.resolveVersions(indexId, Array.from(changes.versions.versionIds.subarray(0, 10)));
      const order = { after: 'document 1', limit: 5, nowMs: 0 };
      await catalog.firstVersions(indexId, Array.from(changes.versions.versionIds), order);
      const segmentIds = changes.segments.map(({ id }) => id);
      await catalog.changesSince({ indexId, generation, segmentIds });
      await merge(catalog, indexId, 2);
      await catalog.forgetDeadVersions(indexId, generation);
    }
    await catalog.claimSweep({ ageMs: 0, limit: 5 });
    await catalog.deleteIndex(tenant.id, ids[times + time]!);
    const garbage = await catalog.collectGarbage({ keptMs: 0, limit: 5 });
    await catalog.forgetGarbage(garbage.map(({ segmentId }) => segmentId));
  }
  await catalog.close();
  // Documents of deleted indexes are purged at the start.
  catalog = await open();
  const isPurged = async () => (await queryDatabase(url, 'SELECT FROM purges')).length === 0;
  await eventually(isPurged);
  await catalog.close();
  expect(await rowsOfScans(url)).toEqual(before);

  // A planted scan is counted.
  await queryDatabase(url, `SELECT count(*) FROM placements WHERE version_id % 2 = 0`);
  expect(await rowsOfScans(url)).not.toEqual(before);
});
