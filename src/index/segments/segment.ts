/**
 * One segment as its index keeps it. `active` takes records; `retired` takes none any more and waits for
 * the upserts that wrote to it; `sealed` is immutable.
 */
export interface Segment {
  readonly id: number;
  readonly blob: string;
  state: 'active' | 'retired' | 'sealed';
  /** A write or a sync failed: the file is never written again, its live records move by a merge. */
  poisoned: boolean;
  /** A background job is sealing it, or filling it and will. */
  sealing: boolean;
  /** Upserts in flight with records here. */
  writers: number;
  tokenVectors: number;
  termBytes: number;
  /** When the oldest bytes that no live version needs came to be; `undefined` while there are none. */
  wasteSinceMs: number | undefined;
}

export function newSegment(id: number, blob: string): Segment {
  return {
    id,
    blob,
    state: 'active',
    poisoned: false,
    sealing: false,
    writers: 0,
    tokenVectors: 0,
    termBytes: 0,
    wasteSinceMs: undefined,
  };
}

/** Blob name of a segment. */
export function segmentBlob(indexId: string, segmentId: number): string {
  return `${indexId}/${segmentId}.seg`;
}
