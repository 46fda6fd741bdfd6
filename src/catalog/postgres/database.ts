/**
 * The connections of one catalog to PostgreSQL, and the only importer of its driver. Statements are prepared by name.
 *
 * `bigint` columns hold identifiers, generations and times. They are safe integers and become numbers. Totals of tokens are
 * selected as text. Text that users choose (`doc_id`, names of indexes) is `bytea`, because PostgreSQL's text cannot hold
 * U+0000.
 */
import { Pool, TypeOverrides, type ClientBase, type PoolClient, type QueryResultRow } from 'pg';
import { whyAway } from '../../away-reasons.ts';
import { observed, type CallObserver } from '../../observation/call-observer.ts';
import { ServiceError } from '../../errors.ts';

export interface Statement {
  readonly name: string;
  readonly text: string;
}

/** Statements by name. The key `findKey` makes the statement `find-key`. */
export function statements<Key extends string>(
  texts: Readonly<Record<Key, string>>,
): Readonly<Record<Key, Statement>> {
  const entries = Object.entries<string>(texts).map(([key, text]) => {
    const name = key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    return [key, { name, text }];
  });
  return Object.fromEntries(entries) as Record<Key, Statement>;
}

export interface Queries {
  rows<Row extends QueryResultRow>(
    statement: Statement,
    values?: readonly unknown[],
  ): Promise<readonly Row[]>;
}

export interface Database extends Queries {
  /** Runs `work` in a transaction. An error rolls it back. After a deadlock it is tried again, so `work` may run twice. */
  transaction<T>(work: (queries: Queries) => Promise<T>, mode?: string): Promise<T>;
  close(): Promise<void>;
}

/**
 * Connections of a node, by their use. A read that takes long waits for other long reads, and never takes a connection that
 * admission, a search or a commit needs.
 */
const connectionsMax = {
  /** Statements that find rows by a key. */
  serving: 10,
  /** Lists and counts. */
  scans: 3,
  /** Reads of whole indexes, for a node that opens them. */
  openings: 3,
} as const;
const connectMsMax = 5_000;
/** Longer than any statement that serves. */
const statementMsMax = 60_000;
/** No caller waits longer for a list or a count. */
const scanMsMax = 30_000;
/** A row is locked longer only when far too many commits go to one index. */
const lockMsMax = 15_000;

/**
 * The settings of each session that serves. Every statement must use an index: PostgreSQL keeps one plan for all values, and it
 * would keep one that reads a whole table if that table was small, or held mostly one index, when the plan was made.
 */
const serving = {
  statement_timeout: statementMsMax,
  lock_timeout: lockMsMax,
  idle_in_transaction_session_timeout: statementMsMax,
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  // Compiling a plan takes longer than running any of these statements, whatever the planner estimates.
  jit: 'off',
};

export interface DatabaseOptions {
  /**
   * `postgres://user:password@host:port/database`, with TLS by `sslmode`, `sslrootcert`, `sslcert` and `sslkey`, which mean
   * what they mean to PostgreSQL's own programs.
   */
  readonly url: string;
  /** Default `serving`. */
  readonly use?: keyof typeof connectionsMax;
  /** Statements may take as long as they need. */
  readonly isPatient?: boolean;
  readonly onIdleError?: (error: Error) => void;
  readonly onCall?: CallObserver | undefined;
}
const retrySeconds = 1;
const attemptsMax = 5;

const int8 = 20;
const int8Array = 1016;
const parsers = new TypeOverrides();
parsers.setTypeParser(int8, Number);
parsers.setTypeParser(
  int8Array,
  (text: string) => JSON.parse(`[${text.slice(1, -1).replaceAll('NULL', 'null')}]`) as (number | null)[],
);

export function openDatabase({
  url,
  use = 'serving',
  isPatient = false,
  onIdleError,
  onCall,
}: DatabaseOptions): Database {
  const pool = new Pool({
    connectionString: asLibpq(url),
    max: connectionsMax[use],
    connectionTimeoutMillis: connectMsMax,
    ...(isPatient
      ? {}
      : {
          query_timeout: 2 * statementMsMax,
          onConnect: (client) =>
            applySettings(client, use === 'scans' ? { ...serving, statement_timeout: scanMsMax } : serving),
        }),
    keepAlive: true,
    application_name: 'maxsimd',
    types: parsers,
  });
  // A connection that breaks while it is idle leaves the pool. The next use makes another.
  pool.on('error', onIdleError ?? ignore);
  return {
    rows: (statement, values) => again(() => rowsOf(pool, statement, values, onCall)),
    transaction: (work, mode = 'BEGIN') => again(() => transaction(pool, work, mode, onCall)),
    close: () => pool.end(),
  };
}

/** By a statement, because poolers such as PgBouncer refuse settings with a connection, or drop them. */
async function applySettings(client: ClientBase, settings: Readonly<Record<string, unknown>>): Promise<void> {
  const query = {
    text: 'SELECT set_config(key, value, false) FROM json_each_text($1)',
    values: [JSON.stringify(settings)],
    query_timeout: connectMsMax,
  };
  await client.query(query);
}

/** Without `uselibpqcompat` the driver gives `sslmode` another meaning than PostgreSQL's programs. */
function asLibpq(url: string): string {
  const parsed = new URL(url);
  if (parsed.searchParams.has('sslmode')) parsed.searchParams.set('uselibpqcompat', 'true');
  return parsed.href;
}

async function transaction<T>(
  pool: Pool,
  work: (queries: Queries) => Promise<T>,
  mode: string,
  onCall: CallObserver | undefined,
): Promise<T> {
  const client = await pool.connect().catch((error: unknown) => {
    throw fromPostgres(error);
  });
  // A connection that breaks between two statements emits an error. The next statement rejects, so it is ignored here.
  client.on('error', ignore);
  let broken: Error | undefined;
  try {
    await client.query(mode);
    const result = await work({
      rows: (statement, values) => rowsOf(client, statement, values, onCall),
    });
    await client.query('COMMIT');
    return result;
  } catch (error) {
    broken = await client.query('ROLLBACK').then(
      () => undefined,
      (failure: unknown) => failure as Error,
    );
    throw fromPostgres(error);
  } finally {
    client.off('error', ignore);
    client.release(broken);
  }
}

function ignore(): void {}

async function rowsOf<Row extends QueryResultRow>(
  client: Pick<PoolClient, 'query'>,
  { name, text }: Statement,
  values: readonly unknown[] = [],
  onCall?: CallObserver,
): Promise<readonly Row[]> {
  const query = async (): Promise<readonly Row[]> => {
    try {
      return (await client.query<Row>({ name, text, values: [...values] })).rows;
    } catch (error) {
      throw fromPostgres(error);
    }
  };
  return observed(onCall, name, query, isAway);
}

/**
 * Tries again what was rolled back because of another transaction, and the deletion of a tenant that got an index meanwhile
 * (a foreign key violation).
 */
async function again<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (attempt === attemptsMax || !/^(40001|40P01|23503)$/.test(codeOf(error) ?? '')) throw error;
    }
  }
}

/** The SQLSTATE, or the code of a system error. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/**
 * Classes: connection exception, insufficient resources, operator intervention, system error. Codes: a read-only standby, a
 * lock timeout, a system error of Node.
 */
const away = /^(08...|53...|57...|58...|25006|55P03|E(?!RR_)[A-Z_]+)$/;

/** Whether the outcome of the statement is unknown. */
export function isAway(error: unknown): boolean {
  return error instanceof ServiceError && error.code === 'service_unavailable';
}

function fromPostgres(error: unknown): unknown {
  if (error instanceof ServiceError || !(error instanceof Error)) return error;
  const isLost =
    /^(Connection terminated|Cannot use a pool after|Query read timeout|timeout exceeded|Client has encountered)/.test(
      error.message,
    );
  if (!isLost && !away.test(codeOf(error) ?? '') && whyAway(error) === undefined) return error;
  return new ServiceError('service_unavailable', 'the catalog cannot be reached', {
    retryAfterSeconds: retrySeconds,
    cause: error,
  });
}
