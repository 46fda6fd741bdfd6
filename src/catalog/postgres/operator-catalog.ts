/**
 * Operations of the command line on a catalog that nodes share. They take long, so they have connections of their own and are
 * no part of serving.
 */
import { clusterStatus, type ClusterStatus } from './reads/cluster-status.ts';
import {
  noteUploads,
  occupied,
  readContents,
  writeContents,
  type Restored,
  type SharedContents,
} from './contents.ts';
import { openDatabase, statements } from './database.ts';
import { unplaced, type Unplaced } from './reads/unplaced.ts';

export interface OperatorCatalog {
  /** Counts live documents that lie in no sealed segment of their index, by the segment that their rows name. */
  unplaced(indexId: string): Promise<readonly Unplaced[]>;
  /** Whether the catalog names this segment now. */
  names(segment: { readonly id: number; readonly blob: string }): Promise<boolean>;
  status(): Promise<ClusterStatus>;
  /** Runs `work` on the contents of one moment. It must not use them after it has settled. */
  contents<T>(work: (contents: SharedContents) => Promise<T>): Promise<T>;
  /** Why nothing can be restored here. `undefined` when the catalog is empty. */
  occupied(): Promise<string | undefined>;
  /** Must be called before objects are put for a restore. Returns the ids of their rows. */
  noteUploads(blobs: readonly string[]): Promise<readonly number[]>;
  /** Fills an empty catalog in one transaction, all or nothing. Returns why that is refused; `undefined` when it is done. */
  restore(restored: Restored): Promise<string | undefined>;
  close(): Promise<void>;
}

const sql = statements({
  namesSegment: `SELECT FROM segments WHERE id = $1 AND blob = $2 AND state = 'sealed'`,
});

/** Migrates nothing: this release must have opened the catalog before. */
export function openOperatorCatalog(url: string): OperatorCatalog {
  const database = openDatabase({ url, isPatient: true });
  return {
    unplaced: (indexId) => unplaced(database, indexId),
    async names({ id, blob }) {
      return (await database.rows(sql.namesSegment, [id, blob])).length > 0;
    },
    status: () => clusterStatus(database),
    contents: (work) => readContents(database, work),
    occupied: () => occupied(database),
    noteUploads: (blobs) => noteUploads(database, blobs),
    restore: (restored) => writeContents(database, restored),
    close: () => database.close(),
  };
}
