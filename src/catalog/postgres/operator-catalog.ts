/**
 * What operators ask of a catalog that nodes share, and its nodes never do. Connections of its own: it reads for long, and
 * is no part of serving.
 */
import { clusterStatus, type ClusterStatus } from './cluster-status.ts';
import {
  noteUploads,
  occupied,
  readContents,
  writeContents,
  type Restored,
  type SharedContents,
} from './contents.ts';
import { openDatabase } from './database.ts';
import { unplaced, type Unplaced } from './reads/unplaced.ts';

export interface OperatorCatalog {
  /** Live documents that lie in no sealed segment of their index, by the segment that their rows name. */
  unplaced(indexId: string): Promise<readonly Unplaced[]>;
  /** Whether the catalog names this segment now. */
  names(segment: { readonly id: number; readonly blob: string }): Promise<boolean>;
  status(): Promise<ClusterStatus>;
  /** Runs `work` on one moment of everything. It must be done with it when it settles. */
  contents<T>(work: (contents: SharedContents) => Promise<T>): Promise<T>;
  /** Why nothing can be restored here; `undefined`: nothing is stored. */
  occupied(): Promise<string | undefined>;
  /** Before objects are put for a restore; returns the numbers of their rows. */
  noteUploads(blobs: readonly string[]): Promise<readonly number[]>;
  /** One transaction: an empty catalog holds all of it, or is as it was. Returns why it is refused. */
  restore(restored: Restored): Promise<string | undefined>;
  close(): Promise<void>;
}

/** The catalog must have been opened by this release before: nothing is migrated here. */
export function openOperatorCatalog(url: string): OperatorCatalog {
  const database = openDatabase({ url, isPatient: true });
  return {
    unplaced: (indexId) => unplaced(database, indexId),
    async names({ id, blob }) {
      const text = `SELECT FROM segments WHERE id = $1 AND blob = $2 AND state = 'sealed'`;
      return (await database.rows({ name: 'names-segment', text }, [id, blob])).length > 0;
    },
    status: () => clusterStatus(database),
    contents: (work) => readContents(database, work),
    occupied: () => occupied(database),
    noteUploads: (blobs) => noteUploads(database, blobs),
    restore: (restored) => writeContents(database, restored),
    close: () => database.close(),
  };
}
