/**
 * Commits of documents: each is one call of a function in the database (`functions.ts`), and so one transaction. When
 * the connection is lost on the way nobody knows whether it happened. Every commit leaves a mark, and who has lost the
 * answer leaves the same mark itself: if that was the first, the commit has not happened and never will.
 */
import { randomUUID } from 'node:crypto';
import type {
  Catalog,
  CommitDeleteResult,
  CommitUpsertInput,
  CommitUpsertResult,
  UsageEvent,
} from '../contract.ts';
import { assertInvariant, invalid, ServiceError } from '../../errors.ts';
import { codeOf, isAway, type Database, type Statement } from './database.ts';
import { diedColumn, refusals } from './functions.ts';
import { toDead, usageValues, type DiedColumn } from './rows.ts';

type CommitCatalog = Pick<Catalog, 'commitUpsert' | 'commitDelete'>;

interface Committed {
  readonly generation: number | null;
  readonly died: DiedColumn;
}

/** After the loss of a connection the database may need as long to come back. */
const readBackMsMax = 10_000;
const readBackPauseMs = 100;

const upsert: Statement = {
  name: 'commit-upsert',
  text: `SELECT committed AS generation, dead AS died FROM commit_upsert_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14,
    $15, $16, $17, $18, $19, $20)`,
};
const remove: Statement = {
  name: 'commit-delete',
  text: 'SELECT committed AS generation, dead AS died FROM commit_delete_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)',
};

export function commitCatalog(database: Database): CommitCatalog {
  return {
    async commitUpsert(input): Promise<CommitUpsertResult> {
      const { documents, tenantId, usage } = input;
      assertInvariant(documents.length > 0, 'an upsert commits at least one document');
      assertInvariant(
        new Set(documents.map(({ docId }) => docId)).size === documents.length,
        'doc ids of one upsert are unique',
      );
      assertUsage(usage, tenantId);
      for (const { docId } of documents) assertDocId(docId);
      try {
        const committed = await commit(database, input.indexId, (mark) => [
          upsert,
          upsertValues(mark, input),
        ]);
        assertInvariant(committed.generation !== null, 'an upsert has a generation');
        return { outcome: 'committed', generation: committed.generation, died: toDead(committed.died) };
      } catch (error) {
        return refusalOf(error);
      }
    },

    async commitDelete({ tenantId, indexId, docId, usage }): Promise<CommitDeleteResult> {
      assertUsage(usage, tenantId);
      assertDocId(docId);
      try {
        const committed = await commit(database, indexId, (mark) => [
          remove,
          [mark, tenantId, indexId, Buffer.from(docId), ...usageValues(usage)],
        ]);
        const [died] = toDead(committed.died);
        if (committed.generation === null || died === undefined) return { outcome: 'absent' };
        return { outcome: 'committed', generation: committed.generation, died };
      } catch (error) {
        if (codeOf(error) === refusals.indexMissing) return { outcome: 'index_missing' };
        throw error;
      }
    },
  };
}

async function commit(
  database: Database,
  indexId: string,
  call: (mark: string) => readonly [Statement, readonly unknown[]],
): Promise<Committed> {
  const mark = randomUUID();
  try {
    const [row] = await database.rows<Committed & Record<string, unknown>>(...call(mark));
    assertInvariant(row !== undefined, 'a function has one row');
    return row;
  } catch (error) {
    if (!isAway(error)) throw error;
    const committed = await readBack(database, indexId, mark).catch(() => {
      throw error;
    });
    if (committed === undefined) throw error;
    return committed;
  }
}

/** What a commit did whose answer was lost; `undefined`: nothing, for good. */
async function readBack(database: Database, indexId: string, mark: string): Promise<Committed | undefined> {
  const endsAt = performance.now() + readBackMsMax;
  for (;;) {
    try {
      // Waits for the end of the commit, if it is still under way.
      const text = 'INSERT INTO commit_marks (id) VALUES ($1) ON CONFLICT (id) DO NOTHING';
      await database.rows({ name: 'leave-mark', text }, [mark]);
      const [row] = await database.rows<Committed & Record<string, unknown>>(
        {
          name: 'read-mark',
          text: `SELECT m.generation, (SELECT ${diedColumn} FROM versions v JOIN indexes i USING (index_key)
              WHERE i.id = $2 AND v.died > 0 AND v.died = m.generation) AS died
            FROM commit_marks m WHERE m.id = $1`,
        },
        [mark, indexId],
      );
      return row === undefined || row.generation === null ? undefined : row;
    } catch (error) {
      if (!isAway(error) || performance.now() > endsAt) throw error;
      await new Promise((resolve) => setTimeout(resolve, readBackPauseMs));
    }
  }
}

function upsertValues(mark: string, input: CommitUpsertInput): readonly unknown[] {
  const { documents, usage } = input;
  const segments = (input.segments ?? []).map(({ id, records, files }) => ({ id, records, files }));
  return [
    mark,
    input.tenantId,
    input.indexId,
    documents.map(({ docId }) => Buffer.from(docId)),
    documents.map(({ metadata }) => metadata),
    documents.map(({ versionId }) => versionId),
    documents.map(({ segmentId }) => segmentId),
    documents.map(({ record }) => record),
    documents.map(({ chunkCount }) => chunkCount),
    documents.map(({ tokenVectors }) => tokenVectors),
    JSON.stringify(segments),
    input.documentsMax,
    ...usageValues(usage),
    input.inputTokensMax ?? null,
  ];
}

function refusalOf(error: unknown): CommitUpsertResult {
  switch (codeOf(error)) {
    case refusals.indexMissing:
      return { outcome: 'index_missing' };
    case refusals.documentAllowance:
      return {
        outcome: 'document_allowance_exceeded',
        documents: Number((error as { readonly detail?: string }).detail),
      };
    case refusals.tokenAllowance:
      return { outcome: 'token_allowance_exceeded' };
    case refusals.segmentReplaced:
      throw new ServiceError('service_unavailable', 'the documents must be sent again', {
        retryAfterSeconds: 1,
        cause: error,
      });
    case refusals.defect:
      throw new Error(`this is a bug: ${(error as Error).message}`, { cause: error });
    default:
      throw error;
  }
}

const monthPattern = /^\d{4}-(?:0[1-9]|1[0-2])$/;

export function assertUsage(event: UsageEvent, tenantId = event.tenantId): void {
  assertInvariant(event.tenantId === tenantId, 'usage is charged to the tenant that writes');
  assertInvariant(monthPattern.test(event.month), `${event.month} is not a month`);
}

/** A lone surrogate has no UTF-8 form: another document's name would be stored. */
function assertDocId(docId: string): void {
  if (!docId.isWellFormed()) throw invalid('doc_id', 'doc_id is not well-formed Unicode');
}
