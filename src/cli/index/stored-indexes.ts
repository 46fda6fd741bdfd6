/**
 * Indexes as commands read them. Their files lie in a data directory (`directory-indexes.ts`), or in the object store of
 * several nodes (`../cluster/shared-indexes.ts`).
 */
import type { IndexState, SegmentRow } from '../../contracts/index-state.ts';
import type { Problem } from './findings.ts';

export interface StoredFile {
  /** Its name in a data directory: `<index id>/<file>`. */
  readonly name: string;
  /** Its name in the store. */
  readonly key: string;
  readonly bytes: number;
  /** Resolves to a local path. Rejects with code `ENOENT` if the file is missing, with `corrupt` if it is not what was put. */
  open(): Promise<string>;
}

export interface StoredSegment extends SegmentRow {
  readonly own: StoredFile;
  /** Its derived data. In a data directory, codebooks are among the other files of the index. */
  readonly derived: readonly StoredFile[];
}

/** An index at one moment of the catalog. */
export interface StoredIndex extends IndexState {
  readonly segments: readonly StoredSegment[];
  /** Files that belong to none of the segments. */
  readonly others: readonly StoredFile[];
}

export interface StoredIndexes {
  /** The reason why the files cannot be searched here; `undefined` if they can. */
  readonly unsearchable?: string | undefined;
  /** `undefined` if the index was deleted. */
  read(indexId: string): Promise<StoredIndex | undefined>;
  /** Whether the catalog names the segment now. A merge or a deletion may have replaced it. */
  names(segment: SegmentRow): Promise<boolean>;
  /** Checks the documents of an index in the catalog. */
  documentProblems(indexId: string, state: IndexState): Promise<readonly Problem[]>;
  /** Local copies of the segment's files may go. */
  release(segment: SegmentRow): Promise<void>;
}
