/**
 * Commits of documents. Several upserts are one call of a function in the database (`functions.ts`), and so one transaction.
 * Each of them is decided alone.
 *
 * When the connection is lost, it is unknown whether the commit happened. So every commit inserts a mark with a random id. A
 * caller that has lost the answer inserts the same mark. If the mark was not there yet, the commit has not happened, and it
 * cannot happen any more.
 */
import { randomUUID } from 'node:crypto';
import type { ClusterCatalog } from '../cluster-contract.ts';
import { assertDocId, assertUpsert, assertUsage } from '../checks.ts';
import type { CommitDeleteInput, CommitDeleteResult, CommitDeleteVersionsResult } from '../contract.ts';
import type { CommitUpsertInput, CommitUpsertResult, DeadVersion } from '../../contracts/document-commits.ts';
import { assertInvariant, ServiceError } from '../../errors.ts';
import { codeOf, isAway, type Database, type Statement, statements } from './database.ts';
import { diedColumn, placeNow, refusals } from './functions.ts';
import { usageValues } from '../rows.ts';

/** As `diedColumn` says. */
type DiedColumn =
  | readonly (readonly [docId: string, versionId: number, segmentId: number, record: number])[]
  | null;

interface Committed {
  readonly generation: number | null;
  readonly died: DiedColumn;
}

interface UpsertsRow {
  readonly committed: readonly (number | null)[];
  readonly dead: readonly DiedColumn[];
  readonly refused: readonly (string | null)[];
  readonly details: readonly (string | null)[];
}

/** How long the outcome of a commit is asked for after the loss of a connection, until the database is back. */
const readBackMsMax = 10_000;
const readBackPauseMs = 100;

export function commitCatalog(database: Database) {
  return {
    async commitUpsert(input) {
      const [result] = await commitUpserts(database, [input]);
      assertInvariant(result !== undefined, 'one upsert has one result');
      if (result.status === 'rejected') throw result.reason;
      return result.value;
    },

    commitUpserts: (inputs) => commitUpserts(database, inputs),

    async commitDelete({ docId, ...input }): Promise<CommitDeleteResult> {
      assertDocId(docId);
      const deleted = await commitDeletion(database, sql.commitDelete, input, Buffer.from(docId));
      if (deleted.outcome !== 'committed') return deleted;
      const [died] = deleted.died;
      assertInvariant(died !== undefined, 'a deletion ends a version');
      return { ...deleted, died };
    },

    commitDeleteVersions: ({ versionIds, ...input }) =>
      commitDeletion(database, sql.commitDeleteVersions, input, versionIds),
  } satisfies Partial<ClusterCatalog>;
}

/** `deleted`: the fourth argument of the statement. */
async function commitDeletion(
  database: Database,
  statement: Statement,
  { tenantId, indexId, usage }: Omit<CommitDeleteInput, 'docId'>,
  deleted: unknown,
): Promise<CommitDeleteVersionsResult> {
  assertUsage(usage, tenantId);
  const mark = randomUUID();
  try {
    const values = [mark, tenantId, indexId, deleted, ...usageValues(usage)];
    const committed = await database.rows<Committed>(statement, values).then(
      ([row]) => {
        assertInvariant(row !== undefined, 'a function has one row');
        return row;
      },
      async (error: unknown) =>
        (await readBack(database, indexId, [mark], error))[0] ?? Promise.reject(error),
    );
    if (committed.generation === null) return { outcome: 'absent' };
    return { outcome: 'committed', generation: committed.generation, died: toDead(committed.died) };
  } catch (error) {
    if (codeOf(error) === refusals.indexMissing) return { outcome: 'index_missing' };
    throw error;
  }
}

async function commitUpserts(
  database: Database,
  inputs: readonly CommitUpsertInput[],
): Promise<readonly PromiseSettledResult<CommitUpsertResult>[]> {
  const [first] = inputs;
  assertInvariant(first !== undefined, 'at least one upsert is committed');
  for (const input of inputs) {
    const isOfIndex = input.indexId === first.indexId && input.tenantId === first.tenantId;
    assertInvariant(isOfIndex, 'upserts are of one index');
    assertUpsert(input);
  }
  const marks = inputs.map(() => randomUUID());
  try {
    const [row] = await database.rows<UpsertsRow>(sql.commitUpserts, upsertValues(marks, inputs));
    assertInvariant(row !== undefined, 'a function has one row');
    return await Promise.allSettled(inputs.map((_input, place) => resultAt(row, place)));
  } catch (error) {
    const committed = await readBack(database, first.indexId, marks, error);
    return await Promise.allSettled(
      committed.map(async (found) => (found === undefined ? Promise.reject(error) : committedAs(found))),
    );
  }
}

async function resultAt(
  { committed, dead, refused, details }: UpsertsRow,
  place: number,
): Promise<CommitUpsertResult> {
  const code = refused[place] ?? undefined;
  if (code !== undefined) return refusalOf(code, details[place] ?? '');
  return committedAs({ generation: committed[place] ?? null, died: dead[place] ?? null });
}

function committedAs({ generation, died }: Committed): CommitUpsertResult {
  assertInvariant(generation !== null, 'an upsert has a generation');
  return { outcome: 'committed', generation, died: toDead(died) };
}

/**
 * Finds the result of a transaction that failed with `error`. Returns what was committed under each of its marks; `undefined`
 * where nothing was committed, and never will be. Rejects with `error` when the transaction was refused, or when the
 * database does not come back in time.
 */
async function readBack(
  database: Database,
  indexId: string,
  marks: readonly string[],
  error: unknown,
): Promise<readonly (Committed | undefined)[]> {
  const endsAt = performance.now() + readBackMsMax;
  while (isAway(error) && performance.now() < endsAt) {
    try {
      // This statement waits for a commit that is still under way.
      await database.rows(sql.leaveMarks, [marks]);
      const rows = await database.rows<Committed & { id: string }>(sql.readMarks, [marks, indexId]);
      const committed = new Map(rows.map((row) => [row.id, row]));
      return marks.map((mark) => committed.get(mark));
    } catch (failure) {
      if (!isAway(failure)) break;
      await new Promise((resolve) => setTimeout(resolve, readBackPauseMs));
    }
  }
  throw error;
}

const sql = statements({
  commitUpserts: `SELECT committed, dead, refused, details FROM commit_upserts_3($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13,
    $14, $15, $16, $17, $18, $19, $20, $21, $22, $23)`,
  commitDelete:
    'SELECT committed AS generation, dead AS died FROM commit_delete_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)',
  commitDeleteVersions:
    'SELECT committed AS generation, dead AS died FROM commit_delete_versions_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)',
  leaveMarks: 'INSERT INTO commit_marks (id) SELECT unnest($1::uuid[]) ON CONFLICT (id) DO NOTHING',
  readMarks: `SELECT m.id, m.generation, (SELECT ${diedColumn} FROM versions v JOIN indexes i USING (index_key)
      LEFT JOIN ${placeNow} ON true
      WHERE i.id = $2 AND v.died > 0 AND v.died = m.generation) AS died
    FROM commit_marks m WHERE m.id = ANY($1) AND m.generation IS NOT NULL`,
});

function upsertValues(marks: readonly string[], inputs: readonly CommitUpsertInput[]): readonly unknown[] {
  const documents = inputs.flatMap((input) => input.documents);
  const segments = new Map(
    inputs.flatMap((input) => (input.segments ?? []).map((named) => [named.id, named])),
  );
  const usage = inputs.map((input) => usageValues(input.usage));
  return [
    inputs[0]?.tenantId,
    inputs[0]?.indexId,
    JSON.stringify([...segments.values()].map(({ id, records, files }) => ({ id, records, files }))),
    marks,
    inputs.map((input) => input.documents.length),
    inputs.map(({ documentsMax }) => documentsMax),
    ...(usage[0] ?? []).map((_value, column) => usage.map((values) => values[column])),
    inputs.map(({ inputTokensMax }) => inputTokensMax ?? null),
    documents.map(({ docId }) => Buffer.from(docId)),
    documents.map(({ metadata }) => metadata),
    documents.map(({ versionId }) => versionId),
    documents.map(({ segmentId }) => segmentId),
    documents.map(({ record }) => record),
    documents.map(({ chunkCount }) => chunkCount),
    documents.map(({ tokenVectors }) => tokenVectors),
    documents.map(({ replaces }) => replaces ?? null),
    documents.map(({ expiresAtMs }) => expiresAtMs ?? null),
  ];
}

function refusalOf(code: string, detail: string): CommitUpsertResult {
  switch (code) {
    case refusals.indexMissing:
      return { outcome: 'index_missing' };
    case refusals.documentAllowance:
      return { outcome: 'document_allowance_exceeded', documents: Number(detail) };
    case refusals.tokenAllowance:
      return { outcome: 'token_allowance_exceeded' };
    case refusals.documentChanged:
      return { outcome: 'document_changed' };
    case refusals.segmentReplaced:
      throw new ServiceError('service_unavailable', 'the documents must be sent again', {
        retryAfterSeconds: 1,
        cause: new Error(detail),
      });
    default:
      throw new Error(`this is a bug: ${detail}`);
  }
}

function toDead(died: DiedColumn): readonly DeadVersion[] {
  return (died ?? []).map(([docId, versionId, segmentId, record]) => ({
    docId: Buffer.from(docId, 'base64').toString(),
    versionId,
    segmentId,
    record,
  }));
}
