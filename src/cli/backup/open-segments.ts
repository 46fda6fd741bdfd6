/**
 * Holds open all segments that one moment of the catalog names, so a file stays readable if a merge or a deletion removes it
 * meanwhile. A server removes a file only after the catalog has dropped its segment. So a missing file whose segment is
 * still in the catalog later is lost.
 */
import { closeSync, fstatSync, openSync } from 'node:fs';
import path from 'node:path';
import type { CatalogSnapshot } from '../../catalog/sqlite/snapshot.ts';
import type { SegmentRow } from '../../contracts/index-state.ts';
import { hasCode } from '../../system-errors.ts';
import { CommandFailure } from '../failure.ts';

export interface OpenSegments {
  readonly rows: readonly SegmentRow[];
  readonly missing: readonly SegmentRow[];
  /** By the segment's id. */
  readonly descriptors: ReadonlyMap<number, number>;
  close(): void;
}

/** Renews the snapshot until each file that it names is open or lost. */
export function openSegments(
  directory: string,
  snapshot: Pick<CatalogSnapshot, 'segments' | 'renew'>,
): OpenSegments {
  const descriptors = new Map<number, number>();
  const close = (): void => {
    for (const descriptor of descriptors.values()) closeSync(descriptor);
  };
  try {
    let lost = new Set<number>();
    for (;;) {
      const rows = snapshot.segments();
      for (const { id, blob } of rows.filter((row) => !descriptors.has(row.id))) {
        const descriptor = openIfThere(path.join(directory, 'segments', blob), rows.length);
        if (descriptor !== undefined) descriptors.set(id, descriptor);
      }
      const missing = rows.filter(({ id }) => !descriptors.has(id));
      if (missing.every(({ id }) => lost.has(id))) return { rows, missing, descriptors, close };
      lost = new Set(missing.map(({ id }) => id));
      snapshot.renew();
    }
  } catch (error) {
    close();
    throw error;
  }
}

function openIfThere(file: string, segments: number): number | undefined {
  try {
    return openSync(file, 'r');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    if (!hasCode(error, 'EMFILE')) throw error;
    throw new CommandFailure(
      'backup_failed',
      `${segments} segments need as many open files: raise the bound on descriptors (ulimit -n)`,
      { cause: error },
    );
  }
}

/** An upper bound for the archive. Active segments have spare space. */
export function bytesOf({ descriptors }: OpenSegments): number {
  return [...descriptors.values()].reduce((sum, descriptor) => sum + fstatSync(descriptor).size, 0);
}
