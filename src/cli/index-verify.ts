/**
 * `maxsimd index verify`: every checksum of every file, and the catalog against the files. Changes nothing,
 * also beside a running server.
 */
import type { IndexRow, IndexState, SegmentRow } from '../catalog/contract.ts';
import { derivedEndings } from '../index/derived-data.ts';
import { messageOf } from './failure.ts';
import { stateOf, type IndexAccess } from './index-access.ts';
import { isGone } from './index-inspect.ts';
import { table, type CommandResult } from './output.ts';

interface Problem {
  readonly index_id: string;
  readonly file: string;
  readonly problem: string;
}

export async function verifyIndexes(access: IndexAccess): Promise<CommandResult> {
  const problems: Problem[] = [];
  const counts = { indexes: 0, segments: 0, records: 0, bytes: 0 };
  const unreferenced: string[] = [];
  for (const index of access.rows) {
    const state = await stateOf(access.catalog, index.id);
    if (state === undefined) continue;
    counts.indexes += 1;
    if (index.status === 'error') {
      problems.push({ index_id: index.id, file: '', problem: 'the catalog holds the index for damaged' });
    }
    for (const row of state.segments) {
      const verified = await verifySegment(access, index, row, state);
      if (verified.found.length > 0 && (await isGone(access.catalog, index.id, row.id))) continue;
      counts.segments += 1;
      counts.records += verified.records;
      counts.bytes += verified.bytes;
      for (const problem of verified.found) problems.push({ index_id: index.id, file: row.blob, problem });
    }
    for (const { name } of await access.blobs.list(`${index.id}/`)) {
      const segment = state.segments.find(({ blob }) => name.startsWith(blob));
      if (segment === undefined || name.endsWith('.tmp')) {
        unreferenced.push(name);
        continue;
      }
      const problem = await derivedProblem(access, name);
      if (problem === '' || (await isGone(access.catalog, index.id, segment.id))) continue;
      problems.push({ index_id: index.id, file: name, problem });
    }
  }
  return {
    document: { ...counts, problems, unreferenced_files: unreferenced },
    text: [
      `${counts.records} records of ${counts.segments} segments of ${counts.indexes} indexes verified, ${problems.length} problems`,
      ...(problems.length === 0
        ? []
        : [
            table(
              ['index', 'file', 'problem'],
              problems.map(({ index_id: id, file, problem }) => [id, file, problem]),
            ),
          ]),
      ...(unreferenced.length === 0
        ? []
        : [`not in the catalog, removed at the next start: ${unreferenced.join(', ')}`]),
    ].join('\n'),
    failed: problems.length > 0,
  };
}

/** Derived data: a server ignores a damaged file and builds it anew. */
async function derivedProblem({ engine, blobs }: IndexAccess, name: string): Promise<string> {
  try {
    if (name.endsWith(derivedEndings.codes))
      return (await engine.inspectCodes(await blobs.open(name), true)).damage;
    if (name.endsWith(derivedEndings.postings))
      return (await engine.inspectPostings(await blobs.open(name), true)).damage;
    return '';
  } catch (error) {
    return messageOf(error);
  }
}

interface VerifiedSegment {
  readonly records: number;
  readonly bytes: number;
  readonly found: readonly string[];
}

async function verifySegment(
  { engine, blobs }: IndexAccess,
  index: IndexRow,
  row: SegmentRow,
  state: IndexState,
): Promise<VerifiedSegment> {
  try {
    const file = await blobs.open(row.blob);
    const inspection = await engine.inspectSegment(file, {
      recordsReferenced: row.recordsReferenced,
      firstRecord: 0,
      verifyBytesMax: Number.MAX_SAFE_INTEGER,
    });
    const found = inspection.damaged.map(({ record, what }) => `record ${record} is damaged: ${what}`);
    if (inspection.segmentId !== row.id) found.push(`is the file of segment ${inspection.segmentId}`);
    if (row.state === 'sealed' && inspection.state !== 'sealed') {
      found.push('is sealed in the catalog and has no footer');
    }
    return {
      records: inspection.recordsVerified,
      bytes: inspection.fileBytes,
      found: [...found, ...misplacedVersions(row, state, inspection.versionIds)],
    };
  } catch (error) {
    return { records: 0, bytes: 0, found: [messageOf(error)] };
  }
}

/** Versions that the catalog places where the file holds something else. */
function misplacedVersions(row: SegmentRow, state: IndexState, versionIds: Float64Array): readonly string[] {
  const { segmentIds, records, versionIds: wanted } = state.versions;
  const found: string[] = [];
  for (const [place, segmentId] of segmentIds.entries()) {
    const record = records[place] ?? 0;
    if (segmentId !== row.id || versionIds[record] === wanted[place]) continue;
    found.push(
      `record ${record} holds document version ${versionIds[record] ?? 'none'}, the catalog says ${wanted[place]}`,
    );
  }
  return found;
}
