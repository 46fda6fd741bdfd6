/** Verifies an index: each of its files with its own checksums, and its segments with the catalog. */
import type { IndexRow } from '../../catalog/contract.ts';
import type { IndexState, SegmentRow } from '../../contracts/index-state.ts';
import { derivedEndings, segmentOfColumn } from '../../index/segments/derived-data.ts';
import { hasEngineCode } from '../../index/engine/engine-errors.ts';
import type { NativeEngine } from '../../index/engine/native.ts';
import { hasCode } from '../../system-errors.ts';
import { messageOf } from '../failure.ts';
import { noFindings, report, type Findings } from './findings.ts';
import type { StoredFile, StoredIndex, StoredIndexes, StoredSegment } from './stored-indexes.ts';

export interface Verifying {
  readonly engine: NativeEngine;
  readonly findings: Findings;
}

export function isSegment(name: string): boolean {
  return name.endsWith('.seg');
}

/** Verifies everything that the catalog names of an index. Copies of one segment at a time lie on this machine. */
export async function verifyIndex(
  { engine, findings, stored }: Verifying & { readonly stored: StoredIndexes },
  { id, status }: IndexRow,
  index: StoredIndex,
): Promise<void> {
  findings.indexes += 1;
  if (status === 'error') report(findings, id, '', 'the catalog holds the index for damaged');
  findings.problems.push(...(await stored.documentProblems(id, index)));
  for (const segment of index.segments) {
    const found = noFindings();
    await verifyFiles({ engine, findings: found }, segment, index);
    await stored.release(segment);
    // A merge may have replaced the segment meanwhile. Then its files go.
    if (found.problems.length > 0 && !(await stored.names(segment))) continue;
    findings.segments += 1;
    findings.records += found.records;
    findings.bytes += found.bytes;
    findings.problems.push(...found.problems);
  }
}

async function verifyFiles(verifying: Verifying, segment: StoredSegment, index: StoredIndex): Promise<void> {
  const { own } = segment;
  const { derived = [], columns = [] } = Object.groupBy(segment.derived, ({ name }) =>
    segmentOfColumn(name) === undefined ? 'derived' : 'columns',
  );
  const problem = (file: StoredFile, text: string): void =>
    report(verifying.findings, segment.indexId, file.key, text);
  const open = async (file: StoredFile): Promise<string | undefined> => {
    try {
      return await file.open();
    } catch (error) {
      if (!hasCode(error, 'ENOENT', 'corrupt')) throw error;
      problem(file, hasCode(error, 'ENOENT') ? 'is missing' : `is damaged: ${messageOf(error)}`);
      return undefined;
    }
  };
  const [local, ...beside] = await Promise.all([own, ...derived].map(open));
  if (local !== undefined) await verifySegment(verifying, { ...segment, local }, index);
  for (const file of columns) {
    const damage = await columnDamage(verifying.engine, file);
    if (damage !== '') problem(file, damage);
  }
  // Codes cannot be checked if their codebook is missing.
  if (beside.includes(undefined)) return;
  for (const [place, file] of derived.entries()) {
    const damage = await derivedDamage(verifying.engine, beside[place]!);
    if (damage !== '') problem(file, damage);
  }
}

/**
 * Without a state, only the checksums of the segment are verified. For an active segment that is the header, because only
 * the catalog says where its records end.
 */
export async function verifySegment(
  { engine, findings }: Verifying,
  segment: Pick<SegmentRow, 'indexId' | 'blob'> & Partial<SegmentRow> & { readonly local: string },
  state?: IndexState,
): Promise<void> {
  const problem = (text: string): void => report(findings, segment.indexId, segment.blob, text);
  try {
    const inspection = await engine.inspectSegment(segment.local, {
      recordsReferenced: segment.recordsReferenced ?? 0,
      firstRecord: 0,
      verifyBytesMax: Number.MAX_SAFE_INTEGER,
    });
    findings.records += inspection.recordsVerified;
    findings.bytes += inspection.fileBytes;
    for (const { record, what } of inspection.damaged) problem(`record ${record} is damaged: ${what}`);
    if (state === undefined) return;
    if (inspection.segmentId !== segment.id) problem(`is the file of segment ${inspection.segmentId}`);
    if (segment.state === 'sealed' && inspection.state !== 'sealed')
      problem('is sealed in the catalog and has no footer');
    for (const text of misplacedVersions(segment.id, state, inspection.versionIds)) problem(text);
  } catch (error) {
    problem(messageOf(error));
  }
}

/**
 * The damage of a file of derived data, or an empty string. A server ignores a damaged file and rebuilds it. It does so, too,
 * with codes of another release, which are no damage.
 */
async function derivedDamage(engine: NativeEngine, file: string): Promise<string> {
  const isCodes = file.endsWith(derivedEndings.codes);
  try {
    if (isCodes) return (await engine.inspectCodes(file, true)).damage;
    if (file.endsWith(derivedEndings.postings)) return (await engine.inspectPostings(file, true)).damage;
    return '';
  } catch (error) {
    return isCodes && hasEngineCode(error, 'unsupported_version') ? '' : messageOf(error);
  }
}

/** The damage of a column, or an empty string, also for one that a server has removed meanwhile because nobody uses its field. */
async function columnDamage(engine: NativeEngine, file: StoredFile): Promise<string> {
  try {
    return (await engine.inspectColumn(await file.open(), true)).damage;
  } catch (error) {
    const isGone = await file.open().then(
      () => false,
      (again: unknown) => hasCode(again, 'ENOENT'),
    );
    return isGone || hasEngineCode(error, 'unsupported_version') ? '' : messageOf(error);
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
