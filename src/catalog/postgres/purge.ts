/** Deletes rows in the background that no request needs any more. */
import { setTimeout as pause } from 'node:timers/promises';
import { endedSessionKeptMs } from '../contract.ts';
import { type Database, statements } from './database.ts';

const purgeIntervalMs = 30_000;
const purgeRowsMax = 5_000;
const marksKept = `interval '1 day'`;
const lostNodesKept = `interval '1 day'`;

const sql = statements({
  forgetMarks: `DELETE FROM commit_marks WHERE at < now() - ${marksKept}`,
  forgetNodes: `DELETE FROM nodes WHERE seen_at < now() - ${lostNodesKept}`,
  forgetSessions: 'DELETE FROM ended_sessions WHERE expires_at_ms < $1',
  // Live and dead versions have an index each. The index itself may be back where the catalog fell back to an earlier moment:
  // then the row of `purges` is gone, and nothing is deleted.
  purgeVersions: `DELETE FROM versions WHERE version_id = ANY(ARRAY(
      (SELECT version_id FROM purges JOIN versions USING (index_key)
        WHERE index_key = $1 AND died = 0 LIMIT ${purgeRowsMax})
      UNION ALL
      (SELECT version_id FROM purges JOIN versions USING (index_key)
        WHERE index_key = $1 AND died > 0 LIMIT ${purgeRowsMax}))) RETURNING 1`,
  listPurges: 'SELECT index_key FROM purges',
  endPurge: 'DELETE FROM purges WHERE index_key = $1',
});

/** Purges every half minute until the signal aborts. Never rejects. */
export async function purgeAlways(
  database: Database,
  signal: AbortSignal,
  onFailure: (error: Error) => void,
): Promise<void> {
  while (!signal.aborted) {
    await purge(database, signal).catch(onFailure);
    await pause(purgeIntervalMs, undefined, { signal, ref: false }).catch(() => undefined);
  }
}

async function purge(database: Database, signal: AbortSignal): Promise<void> {
  await database.rows(sql.forgetMarks);
  await database.rows(sql.forgetNodes);
  await database.rows(sql.forgetSessions, [Date.now() - endedSessionKeptMs]);
  for (const { index_key: key } of await database.rows<{ index_key: number }>(sql.listPurges)) {
    while ((await database.rows(sql.purgeVersions, [key])).length > 0) {
      if (signal.aborted) return;
    }
    await database.rows(sql.endPurge, [key]);
  }
}
