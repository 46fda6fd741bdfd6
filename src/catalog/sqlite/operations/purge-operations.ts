/**
 * What deletes in the background: rows of deleted indexes, in batches small enough that a commit never
 * waits long behind one, and free pages given back to the file system. The work that is left lies in the
 * database itself (`purges`), so that a restart, or another process, goes on with it.
 */
import type { Connection } from '../connection.ts';

/** Rows of one batch; with 16 KiB of metadata each, the largest transaction is some megabytes. */
const purgeRowsMax = 128;
const vacuumPagesMax = 128;
/** Free pages that are kept for the next documents: below this, or an eighth of the file. */
const freePagesKept = 1024;

export function purgeOperations(connection: Connection) {
  const nextPurge = connection
    .prepare<[], number>('SELECT index_key FROM purges ORDER BY index_key LIMIT 1')
    .pluck();
  const deleteVersions = connection.prepare(
    `DELETE FROM versions WHERE version_id IN (
       SELECT version_id FROM versions INDEXED BY versions_placed WHERE index_key = ? LIMIT ${purgeRowsMax})`,
  );
  const finishPurge = connection.prepare('DELETE FROM purges WHERE index_key = ?');

  const pagesToFree = (): number => {
    const free = connection.pragma('freelist_count', { simple: true }) as number;
    const pages = connection.pragma('page_count', { simple: true }) as number;
    return Math.max(0, free - Math.max(freePagesKept, Math.ceil(pages / 8)));
  };

  return {
    /** Whether there is anything to do; outside of a transaction, so that looking costs no commit. */
    isPending: (): boolean => nextPurge.get() !== undefined || pagesToFree() > 0,

    /** One batch, inside a transaction; `true` if it did anything. */
    step(): boolean {
      const indexKey = nextPurge.get();
      if (indexKey !== undefined) {
        if (deleteVersions.run(indexKey).changes < purgeRowsMax) finishPurge.run(indexKey);
        return true;
      }
      const pages = pagesToFree();
      if (pages === 0) return false;
      connection.pragma(`incremental_vacuum(${Math.min(pages, vacuumPagesMax)})`);
      return true;
    },
  };
}
