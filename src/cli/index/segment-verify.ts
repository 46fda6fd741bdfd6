/** Verifies one file of an index: with its own checksums, and with the catalog. */
import type { IndexState, SegmentRow } from '../../contracts/index-state.ts';
import type { BlobStore } from '../../index/storage/blob-store.ts';
import { derivedEndings } from '../../index/segments/derived-data.ts';
import type { NativeEngine } from '../../index/engine/native.ts';
import { messageOf } from '../failure.ts';
import { hasEngineCode } from '../../index/engine/engine-errors.ts';

export interface VerifiedSegment {
  readonly records: number;
  readonly bytes: number;
  readonly found: readonly string[];
}

interface Files {
  readonly engine: NativeEngine;
  readonly blobs: Pick<BlobStore, 'open'>;
}

export function isSegment(name: string): boolean {
  return name.endsWith('.seg');
}

/**
 * Without a state, only the checksums of the segment are verified. For an active segment that is the header, because only
 * the catalog says where its records end.
 */
export async function verifySegment(
  { engine, blobs }: Files,
  row: Pick<SegmentRow, 'blob'> & Partial<SegmentRow>,
  state?: IndexState,
): Promise<VerifiedSegment> {
  try {
    const file = await blobs.open(row.blob);
    const inspection = await engine.inspectSegment(file, {
      recordsReferenced: row.recordsReferenced ?? 0,
      firstRecord: 0,
      verifyBytesMax: Number.MAX_SAFE_INTEGER,
    });
    const found = inspection.damaged.map(({ record, what }) => `record ${record} is damaged: ${what}`);
    if (row.id !== undefined && inspection.segmentId !== row.id) {
      found.push(`is the file of segment ${inspection.segmentId}`);
    }
    if (row.state === 'sealed' && inspection.state !== 'sealed') {
      found.push('is sealed in the catalog and has no footer');
    }
    return {
      records: inspection.recordsVerified,
      bytes: inspection.fileBytes,
      found: [
        ...found,
        ...(state === undefined ? [] : misplacedVersions(row.id, state, inspection.versionIds)),
      ],
    };
  } catch (error) {
    return { records: 0, bytes: 0, found: [messageOf(error)] };
  }
}

/**
 * The damage of a file of derived data, or an empty string. A server ignores a damaged file and rebuilds it. It does so, too,
 * with codes of another release, which are no damage.
 */
export async function derivedProblem({ engine, blobs }: Files, name: string): Promise<string> {
  const isCodes = name.endsWith(derivedEndings.codes);
  try {
    if (isCodes) return (await engine.inspectCodes(await blobs.open(name), true)).damage;
    if (name.endsWith(derivedEndings.postings))
      return (await engine.inspectPostings(await blobs.open(name), true)).damage;
    return '';
  } catch (error) {
    return isCodes && hasEngineCode(error, 'unsupported_version') ? '' : messageOf(error);
  }
}

/** Versions that the catalog expects at a record that has another version. */
function misplacedVersions(
  wantedSegment: number | undefined,
  state: IndexState,
  versionIds: Float64Array,
): readonly string[] {
  const { segmentIds, records, versionIds: wanted } = state.versions;
  const found: string[] = [];
  for (const [place, segmentId] of segmentIds.entries()) {
    const record = records[place] ?? 0;
    if (segmentId !== wantedSegment || versionIds[record] === wanted[place]) continue;
    found.push(
      `record ${record} holds document version ${versionIds[record] ?? 'none'}, the catalog says ${wanted[place]}`,
    );
  }
  return found;
}
