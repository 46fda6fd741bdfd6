/**
 * The tables of a catalog that several nodes share, and their migrations. Versions and generations mean what they mean in
 * SQLite (`../sqlite/schema.ts`). Segments are immutable here, and the row of a segment stays until its objects are deleted.
 *
 * Nodes of two releases run side by side during an upgrade. So a migration may say that programs which do not know it still
 * work with its tables. Such a migration only adds. A later release may remove what no node uses any more.
 */
import { ServiceError } from '../../errors.ts';
import { nodeLiveMs } from '../cluster-contract.ts';
import type { Database } from './database.ts';
import {
  commitFunctions,
  deleteVersionsFunction,
  epochFunctions,
  expiringFunctions,
  replacingFunctions,
  swapFunction,
  usageDays,
  usageFunction,
} from './functions.ts';

export interface Migration {
  readonly sql: string;
  /** The oldest schema version that a program may know to work with this one. */
  readonly worksWith: number;
}

/** Sessions of the console that were signed out. A row stays until the session would have expired. */
const endedSessions = `
CREATE TABLE ended_sessions (
  digest bytea PRIMARY KEY,
  key_id text NOT NULL REFERENCES api_keys (id) ON DELETE CASCADE,
  expires_at_ms bigint NOT NULL
);
CREATE INDEX ended_sessions_of_key ON ended_sessions (key_id);
CREATE INDEX ended_sessions_expired ON ended_sessions (expires_at_ms);`;

export const catalogMigrations: readonly Migration[] = [
  {
    worksWith: 1,
    sql: `
CREATE TABLE catalog (
  singleton integer PRIMARY KEY CHECK (singleton = 1),
  id text NOT NULL,
  key_pepper bytea NOT NULL,
  pinged_at timestamptz
);

-- In the order in which they are asked for, whichever node asks: of two versions the older has the smaller id.
CREATE SEQUENCE ids;

CREATE TABLE tenants (
  id text PRIMARY KEY,
  name text NOT NULL,
  suspended boolean NOT NULL DEFAULT false,
  requests_per_minute bigint NOT NULL CHECK (requests_per_minute >= 0),
  max_concurrent_requests bigint NOT NULL CHECK (max_concurrent_requests >= 0),
  input_tokens bigint NOT NULL CHECK (input_tokens >= 0),
  documents_max bigint NOT NULL CHECK (documents_max >= 0),
  documents_stored bigint NOT NULL DEFAULT 0 CHECK (documents_stored >= 0),
  created_at_ms bigint NOT NULL
) WITH (fillfactor = 70);

CREATE TABLE api_keys (
  id text PRIMARY KEY,
  tenant_id text NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  hash bytea NOT NULL,
  created_at_ms bigint NOT NULL,
  revoked_at_ms bigint
);
CREATE INDEX api_keys_of_tenant ON api_keys (tenant_id);

CREATE TABLE indexes (
  index_key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text NOT NULL UNIQUE,
  tenant_id text NOT NULL REFERENCES tenants (id),
  name bytea NOT NULL,
  model text NOT NULL,
  model_version text NOT NULL,
  max_tokens integer NOT NULL,
  overlap_tokens integer NOT NULL,
  minimum_chunk_tokens integer NOT NULL,
  metadata_schema text NOT NULL,
  status text NOT NULL CHECK (status IN ('creating', 'ready', 'error')),
  created_at_ms bigint NOT NULL,
  generation bigint NOT NULL DEFAULT 0,
  layout bigint NOT NULL DEFAULT 0,
  forgotten bigint NOT NULL DEFAULT 0,
  documents_stored bigint NOT NULL DEFAULT 0 CHECK (documents_stored >= 0),
  lease_node text,
  lease_fence bigint NOT NULL DEFAULT 0,
  lease_until timestamptz,
  swept_at timestamptz NOT NULL DEFAULT now(),
  swept_generation bigint NOT NULL DEFAULT 0,
  UNIQUE (tenant_id, name)
) WITH (fillfactor = 70);
CREATE INDEX indexes_swept ON indexes (swept_at);

CREATE TABLE segments (
  id bigint PRIMARY KEY,
  index_key bigint NOT NULL,
  blob text NOT NULL,
  state text NOT NULL CHECK (state IN ('uploading', 'sealed', 'replaced')),
  records_sealed bigint CHECK (records_sealed >= 0),
  files jsonb NOT NULL DEFAULT '[]',
  since timestamptz NOT NULL DEFAULT now(),
  collected_at timestamptz
);
CREATE INDEX segments_of_index ON segments (index_key);
CREATE INDEX segments_garbage ON segments (since) WHERE state <> 'sealed';

CREATE TABLE versions (
  version_id bigint PRIMARY KEY,
  index_key bigint NOT NULL,
  born bigint NOT NULL,
  died bigint NOT NULL DEFAULT 0,
  chunk_count integer NOT NULL,
  token_vectors bigint NOT NULL,
  doc_id bytea NOT NULL,
  metadata text NOT NULL
);
CREATE UNIQUE INDEX versions_live ON versions (index_key, doc_id) WHERE died = 0;
CREATE INDEX versions_dead ON versions (index_key, died) WHERE died > 0;

-- Where versions lie. A segment's rows are there before it is named, never change, and go with its objects: a merge rewrites
-- nothing, and a version lies in every segment that it was merged into.
CREATE TABLE placements (
  segment_id bigint NOT NULL,
  record bigint NOT NULL CHECK (record BETWEEN 0 AND 4294967295),
  version_id bigint NOT NULL,
  PRIMARY KEY (segment_id, record)
);
CREATE INDEX placements_of_version ON placements (version_id);

CREATE TABLE purges (
  index_key bigint PRIMARY KEY
);

CREATE TABLE usage_months (
  tenant_id text NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  month text NOT NULL,
  requests bigint NOT NULL,
  input_tokens bigint NOT NULL,
  document_upserts bigint NOT NULL,
  searches bigint NOT NULL,
  scores bigint NOT NULL,
  rate_window bytea,
  PRIMARY KEY (tenant_id, month)
) WITH (fillfactor = 50);

CREATE TABLE commit_marks (
  id uuid PRIMARY KEY,
  generation bigint,
  at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE nodes (
  id text PRIMARY KEY,
  name text NOT NULL,
  report text NOT NULL,
  -- What the program knows; a migration that it could not work with waits for its end.
  schema_version integer NOT NULL,
  started_at timestamptz NOT NULL DEFAULT now(),
  seen_at timestamptz NOT NULL DEFAULT now()
);
${usageFunction}
${commitFunctions}
${swapFunction}`,
  },
  { worksWith: 1, sql: deleteVersionsFunction },
  { worksWith: 1, sql: replacingFunctions },
  {
    // Nodes of the release before give every key full access.
    worksWith: 1,
    sql: `
ALTER TABLE api_keys ADD COLUMN access text NOT NULL DEFAULT 'full' CHECK (access IN ('full', 'read'));
CREATE INDEX tenants_by_age ON tenants (created_at_ms, id);

CREATE TABLE audit_log (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at_ms bigint NOT NULL,
  actor text NOT NULL,
  act text NOT NULL,
  tenant_id text,
  detail text NOT NULL
);
CREATE INDEX audit_of_tenant ON audit_log (tenant_id, id);
${usageDays}`,
  },
  // Nodes of the release before still accept sessions that were signed out.
  { worksWith: 1, sql: endedSessions },
  // Nodes of the release before begin epochs with their commits, but do not compare them.
  {
    worksWith: 1,
    sql: `
CREATE INDEX tenants_by_name ON tenants USING hash (name);
${epochFunctions}`,
  },
  {
    // Nodes of the release before answer documents that have expired until they are removed. Their updates of metadata lose the expiry.
    // And they cannot read the segments of this release, which say where chunks lie.
    worksWith: 7,
    sql: `
ALTER TABLE versions ADD COLUMN expires_at_ms bigint;
CREATE INDEX versions_expiring ON versions (index_key, expires_at_ms) INCLUDE (chunk_count)
  WHERE died = 0 AND expires_at_ms IS NOT NULL;
${expiringFunctions}`,
  },
  {
    // Nodes that know version 7 do not apply the limits of keys.
    worksWith: 7,
    sql: `
ALTER TABLE api_keys ADD COLUMN requests_per_minute bigint CHECK (requests_per_minute >= 1);
ALTER TABLE api_keys ADD COLUMN max_concurrent_requests bigint CHECK (max_concurrent_requests >= 1);`,
  },
  {
    // Nodes that know version 7 or 8 note no use of a key, and make none when a tenant has two live ones.
    worksWith: 7,
    sql: `
ALTER TABLE api_keys ADD COLUMN name text;
ALTER TABLE api_keys ADD COLUMN last_used_at_ms bigint;`,
  },
  {
    // Nodes that know version 7, 8 or 9 write documents without match terms. So match fields are set when none of them is left.
    worksWith: 7,
    sql: `
ALTER TABLE indexes ADD COLUMN match_fields text NOT NULL DEFAULT '[]';`,
  },
];

/** The first that has `gen_random_uuid`. */
const oldestServer = { number: 130_000, version: '13' };
const serverVersion = `SELECT current_setting('server_version_num')::integer AS number,
  current_setting('server_version') AS version`;

/** Any number that nothing else in this database locks. */
const migrationLock = 7_237_117_301;

/** The time that a migration waits for a table in use. Statements that come meanwhile wait behind it. */
const tableLockMax = '5s';

/** Brings the tables to the newest version that this program knows. One node migrates at a time, and the others wait. */
export async function migrate(
  database: Database,
  migrations: readonly Migration[] = catalogMigrations,
): Promise<void> {
  await database.transaction(async (queries) => {
    const run = <Row extends Record<string, unknown>>(text: string, values: readonly unknown[] = []) =>
      queries.rows<Row>({ name: '', text }, values);
    const [server] = await run<{ number: number; version: string }>(serverVersion);
    if (server !== undefined && server.number < oldestServer.number) throw olderServer(server.version);
    await run('SELECT pg_advisory_xact_lock($1)', [migrationLock]);
    await run(
      'CREATE TABLE IF NOT EXISTS schema_version (singleton integer PRIMARY KEY, version integer, works_with integer)',
    );
    const [row = { version: 0, works_with: 0 }] = await run<{ version: number; works_with: number }>(
      'SELECT version, works_with FROM schema_version',
    );
    if (row.works_with > migrations.length) throw newerCatalog(row, migrations.length);
    const newest = migrations.at(-1);
    if (row.version >= migrations.length || newest === undefined) return;
    const older =
      row.version === 0 ? [] : await run<{ name: string }>(olderNodes, [newest.worksWith, nodeLiveMs]);
    if (older.length > 0) throw olderProgram(older.map(({ name }) => name));
    await run(`SET LOCAL lock_timeout = '${tableLockMax}'`);
    for (const { sql } of migrations.slice(row.version)) await run(sql);
    await run(
      `INSERT INTO schema_version (singleton, version, works_with) VALUES (1, $1, $2)
       ON CONFLICT (singleton) DO UPDATE SET version = excluded.version, works_with = excluded.works_with`,
      [migrations.length, newest.worksWith],
    );
  });
}

const olderNodes = `SELECT name FROM nodes
  WHERE schema_version < $1 AND seen_at > now() - $2 * interval '1 millisecond' ORDER BY name`;

function olderServer(version: string): ServiceError {
  return new ServiceError(
    'service_unavailable',
    `the catalog needs PostgreSQL ${oldestServer.version} or later, and this server is ${version}`,
  );
}

function newerCatalog(
  { version, works_with: worksWith }: { readonly version: number; readonly works_with: number },
  known: number,
): ServiceError {
  return new ServiceError(
    'service_unavailable',
    `the catalog has schema version ${version}, made by a newer maxsimd: programs that know version ${worksWith} or later work with it, and this one knows ${known}`,
  );
}

function olderProgram(names: readonly string[]): ServiceError {
  return new ServiceError(
    'service_unavailable',
    `nodes of an older maxsimd cannot go on after the migration of this one: ${names.join(', ')}; end them first, or upgrade by way of the release before`,
  );
}
