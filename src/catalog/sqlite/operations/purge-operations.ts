/**
 * Background work: deletes the rows of deleted indexes, and gives free pages back to the file system. Batches are small, so that
 * a commit never waits long behind one. The table `purges` holds the work that is left, so that a restart or another process
 * goes on with it.
 */
import type { Connection } from '../connection.ts';

/** Rows of one batch. With 16 KiB of metadata each, the largest transaction has some megabytes. */
const purgeRowsMax = 128;
const vacuumPagesMax = 128;
/** So many free pages, or an eighth of the file, are kept for the next documents. */
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
    /** Whether there is work. It is asked outside of a transaction, so that no commit is spent on it. */
    isPending: (): boolean => nextPurge.get() !== undefined || pagesToFree() > 0,

    /** Runs one batch, inside a transaction. Returns whether it did anything. */
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
