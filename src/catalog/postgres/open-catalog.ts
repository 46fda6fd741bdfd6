/**
 * The catalog of several nodes, in PostgreSQL. Every write is durable when it settles (`synchronous_commit` must not be
 * turned off there). Every read is of the primary.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { explained } from '../../away-reasons.ts';
import type { CallObserver } from '../../call-observer.ts';
import type { ClusterCatalog } from '../cluster-contract.ts';
import { endedSessionKeptMs, unnamedActor } from '../contract.ts';
import { ServiceError } from '../../errors.ts';
import { fingerprintOf } from '../key-pepper.ts';
import { auditCatalog } from './audit-log.ts';
import { commitCatalog } from './commits.ts';
import { openDatabase, type Database } from './database.ts';
import { Epochs } from './epochs.ts';
import { documentCatalog } from './reads/documents.ts';
import { nodeCatalog } from './nodes.ts';
import { catalogMigrations, migrate, type Migration } from './schema.ts';
import { segmentCatalog } from './segments.ts';
import { sweepCatalog } from './sweeps.ts';
import { tenantCatalog } from './tenants.ts';
import { UsageWriter } from './usage.ts';

export interface PostgresCatalogOptions {
  /** `postgres://user:password@host:port/database`, with TLS by its parameters. */
  readonly url: string;
  /** What API keys are hashed with: the same on every node, 32 bytes. */
  readonly keyPepper: Uint8Array;
  /** Purging failed, or an idle connection broke; both mend by themselves. For the log. */
  readonly onBackgroundFailure?: (error: Error) => void;
  /** What a program of another version knows: for tests. */
  readonly migrations?: readonly Migration[];
  /** Each statement, by name. */
  readonly onCall?: CallObserver;
  /** Who writes, for the audit log. */
  readonly actor?: string;
}

const purgeIntervalMs = 30_000;
const purgeRowsMax = 5_000;
const marksKept = `interval '1 day'`;
const lostNodesKept = `interval '1 day'`;

/** Creates or migrates its tables. Another pepper than the catalog's is refused. */
export async function openPostgresCatalog(options: PostgresCatalogOptions): Promise<ClusterCatalog> {
  const { migrations = catalogMigrations } = options;
  const onBackgroundFailure = options.onBackgroundFailure ?? (() => undefined);
  const { url, onCall } = options;
  const pool = (use: 'serving' | 'scans' | 'openings'): Database =>
    openDatabase({ url, use, onIdleError: onBackgroundFailure, onCall });
  const [database, scans, openings] = [pool('serving'), pool('scans'), pool('openings')];
  const closeAll = async (): Promise<void> =>
    void (await Promise.all([database, scans, openings].map((one) => one.close())));
  try {
    await migrateTables(url, migrations);
    await adoptPepper(database, fingerprintOf(options.keyPepper));
  } catch (error) {
    await closeAll();
    throw explained(error);
  }
  const epochs = new Epochs();
  const usage = new UsageWriter(database);
  const ended = new AbortController();
  const purging = purgeAlways(database, ended.signal, onBackgroundFailure);
  let closed: Promise<void> | undefined;
  /** Identifiers come in the order of the calls. */
  let turn: Promise<unknown> = Promise.resolve();

  return {
    ...tenantCatalog(database, scans, options.actor ?? unnamedActor),
    actingAs: (actor) => tenantCatalog(database, scans, actor),
    ...auditCatalog(scans),
    ...commitCatalog(database),
    ...documentCatalog(database, scans),
    ...segmentCatalog(database, openings, epochs),
    ...sweepCatalog(database),
    ...nodeCatalog(database, epochs, migrations.length),
    watchEpoch: (onOther) => epochs.watch(onOther),
    allocateIds: (count) => {
      const ids = turn.then(() => allocateIds(database, count));
      turn = ids.catch(() => undefined);
      return ids;
    },
    recordUsage: usage.record,

    async usageTotals(tenantId, month) {
      const [row] = await database.rows<Record<string, string | number | null>>(
        {
          name: 'usage-totals',
          text: `SELECT requests, input_tokens::text AS input_tokens, document_upserts, searches, scores,
              (SELECT documents_stored FROM tenants WHERE id = $1) AS documents
            FROM (SELECT) AS one LEFT JOIN usage_months ON tenant_id = $1 AND month = $2`,
        },
        [tenantId, month],
      );
      const count = (column: string): number => Number(row?.[column] ?? 0);
      return {
        inputTokens: BigInt(row?.['input_tokens'] ?? 0),
        requests: count('requests'),
        documentUpserts: count('document_upserts'),
        searches: count('searches'),
        scores: count('scores'),
        documents: count('documents'),
      };
    },

    async usageDays(tenantId, from, to) {
      const text = `SELECT day, requests, input_tokens::text AS input_tokens, document_upserts, searches, scores
        FROM usage_days WHERE tenant_id = $1 AND day BETWEEN $2 AND $3 ORDER BY day`;
      const rows = await scans.rows<UsageDayRow>({ name: 'usage-days', text }, [tenantId, from, to]);
      return rows.map((row) => ({
        day: row.day,
        inputTokens: BigInt(row.input_tokens),
        requests: row.requests,
        documentUpserts: row.document_upserts,
        searches: row.searches,
        scores: row.scores,
      }));
    },

    async rateWindows(month) {
      const text = `SELECT tenant_id AS "tenantId", rate_window AS packed FROM usage_months
        WHERE month >= $1 AND rate_window IS NOT NULL`;
      return await database.rows<{ tenantId: string; packed: Buffer }>({ name: 'rate-windows', text }, [
        month,
      ]);
    },

    async ping() {
      await database.rows({ name: 'ping', text: 'UPDATE catalog SET pinged_at = now()' });
    },

    close() {
      ended.abort();
      closed ??= purging.then(closeAll);
      return closed;
    },
  };
}

interface UsageDayRow extends Record<string, unknown> {
  readonly day: string;
  readonly requests: number;
  readonly input_tokens: string;
  readonly document_upserts: number;
  readonly searches: number;
  readonly scores: number;
}

/** A migration, and the wait for another node's, may take longer than what serves. */
async function migrateTables(url: string, migrations: readonly Migration[]): Promise<void> {
  const database = openDatabase({ url, isPatient: true });
  try {
    await migrate(database, migrations);
  } finally {
    await database.close();
  }
}

async function adoptPepper(database: Database, fingerprint: Uint8Array): Promise<void> {
  const insert =
    'INSERT INTO catalog (singleton, id, key_pepper) VALUES (1, $1, $2) ON CONFLICT (singleton) DO NOTHING';
  await database.rows({ name: 'name-catalog', text: insert }, [randomUUID(), Buffer.from(fingerprint)]);
  const [row] = await database.rows<{ key_pepper: Buffer }>({
    name: 'read-pepper',
    text: 'SELECT key_pepper FROM catalog',
  });
  if (row?.key_pepper.equals(fingerprint) === true) return;
  throw new ServiceError(
    'service_unavailable',
    'the keys of this catalog were made with another pepper: MAXSIMD_KEY_PEPPER_FILE must be the same on every node',
  );
}

async function allocateIds(database: Database, count: number): Promise<readonly number[]> {
  // An epoch that begins here passes identifiers over first.
  const text = `SELECT nextval('ids') AS id FROM epoch_1(), generate_series(1, $1::integer)`;
  return (await database.rows<{ id: number }>({ name: 'allocate-ids', text }, [count])).map(({ id }) => id);
}

/** Documents of deleted indexes go, marks that nobody will ask for, and nodes that nobody has heard of for long. */
async function purgeAlways(
  database: Database,
  signal: AbortSignal,
  onFailure: (error: Error) => void,
): Promise<void> {
  while (!signal.aborted) {
    await purge(database, signal).catch(onFailure);
    await pause(purgeIntervalMs, undefined, { signal, ref: false }).catch(() => undefined);
  }
}

async function purge(database: Database, signal: AbortSignal): Promise<void> {
  const marks = `DELETE FROM commit_marks WHERE at < now() - ${marksKept}`;
  await database.rows({ name: 'forget-marks', text: marks });
  const nodes = `DELETE FROM nodes WHERE seen_at < now() - ${lostNodesKept}`;
  await database.rows({ name: 'forget-nodes', text: nodes });
  const sessions = 'DELETE FROM ended_sessions WHERE expires_at_ms < $1';
  await database.rows({ name: 'forget-sessions', text: sessions }, [Date.now() - endedSessionKeptMs]);
  const keys = await database.rows<{ index_key: number }>({
    name: 'list-purges',
    text: 'SELECT index_key FROM purges',
  });
  for (const { index_key: key } of keys) {
    // Each half has an index of its own. A catalog that fell back to an earlier moment may have the index again.
    const text = `DELETE FROM versions WHERE version_id = ANY(ARRAY(
        (SELECT version_id FROM purges JOIN versions USING (index_key)
          WHERE index_key = $1 AND died = 0 LIMIT ${purgeRowsMax})
        UNION ALL
        (SELECT version_id FROM purges JOIN versions USING (index_key)
          WHERE index_key = $1 AND died > 0 LIMIT ${purgeRowsMax}))) RETURNING 1`;
    while ((await database.rows({ name: 'purge-versions', text }, [key])).length > 0) {
      if (signal.aborted) return;
    }
    await database.rows({ name: 'end-purge', text: 'DELETE FROM purges WHERE index_key = $1' }, [key]);
  }
}
