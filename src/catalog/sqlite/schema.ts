/**
 * The two databases of a catalog and their migrations. `PRAGMA user_version` holds the schema version. A file of a newer program
 * is refused.
 *
 * `catalog.db` is the truth: tenants, keys, indexes, document versions, segments, and the usage that commits with documents.
 * `usage.db` holds all other usage.
 *
 * A document *version* is a row from its birth until it is forgotten. `died = 0` means that it is live. The partial unique index
 * allows one live version of a document. The index `versions_placed` holds all that is needed to open an index, so that no page
 * of metadata is read then. A version without a record (`segment_id = 0`) was dead when its segment was merged away, and waits
 * to be forgotten.
 *
 * The one row of `catalog` is about the catalog itself: its id, the fingerprint of the pepper that its keys are hashed with
 * (`key-pepper.ts`), the number of its commits (`commit-mark.ts`), and the next free identifier.
 *
 * Deleting an index removes its row and puts its key into `purges`. The document rows are deleted in small batches afterwards
 * (`purge-operations.ts`). Keys are AUTOINCREMENT, so that no new index gets the rows of an old one.
 */
import { ServiceError } from '../../errors.ts';
import type { Connection } from './connection.ts';

export interface Migrations {
  readonly database: string;
  /** The n-th entry leads from version n to n + 1. */
  readonly steps: readonly string[];
}

const usageMonths = `
CREATE TABLE usage_months (
  tenant_id TEXT NOT NULL,
  month TEXT NOT NULL,
  requests INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  document_upserts INTEGER NOT NULL,
  searches INTEGER NOT NULL,
  scores INTEGER NOT NULL,
  rate_window BLOB,
  PRIMARY KEY (tenant_id, month)
) STRICT, WITHOUT ROWID;`;

/**
 * Triggers add to a day whatever is added to a month, so the days of a month add up to it. The day is today, or the last day of
 * a month that is over. A tenant has at most `usageDaysKept` days.
 */
const usageDaysKept = 400;
const usageCounters = ['requests', 'input_tokens', 'document_upserts', 'searches', 'scores'];
const dayOfRow = `CASE WHEN strftime('%Y-%m') = NEW.month THEN date()
    ELSE date(NEW.month || '-01', '+1 month', '-1 day') END`;

function addToDay(added: (counter: string) => string): string {
  return `INSERT INTO usage_days (tenant_id, day, ${usageCounters.join(', ')})
    VALUES (NEW.tenant_id, ${dayOfRow}, ${usageCounters.map(added).join(', ')})
    ON CONFLICT (tenant_id, day) DO UPDATE SET
      ${usageCounters.map((counter) => `${counter} = ${counter} + excluded.${counter}`).join(', ')};`;
}

const usageDays = `
CREATE TABLE usage_days (
  tenant_id TEXT NOT NULL,
  day TEXT NOT NULL,
  ${usageCounters.map((counter) => `${counter} INTEGER NOT NULL`).join(', ')},
  PRIMARY KEY (tenant_id, day)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER usage_begins_month AFTER INSERT ON usage_months BEGIN
  ${addToDay((counter) => `NEW.${counter}`)}
END;
CREATE TRIGGER usage_adds_to_month AFTER UPDATE ON usage_months BEGIN
  ${addToDay((counter) => `NEW.${counter} - OLD.${counter}`)}
END;
CREATE TRIGGER usage_is_erased AFTER DELETE ON usage_months BEGIN
  DELETE FROM usage_days WHERE tenant_id = OLD.tenant_id;
END;
CREATE TRIGGER usage_begins_day AFTER INSERT ON usage_days BEGIN
  DELETE FROM usage_days WHERE tenant_id = NEW.tenant_id AND day <= date(NEW.day, '-${usageDaysKept} days');
END;`;

/** Triggers count the chunks of live versions. To sum them up at a request would read the pages of all metadata. */
const chunksStored = `
ALTER TABLE indexes ADD COLUMN chunks_stored INTEGER NOT NULL DEFAULT 0;
UPDATE indexes SET chunks_stored = (
  SELECT coalesce(sum(chunk_count), 0) FROM versions INDEXED BY versions_placed
  WHERE versions.index_key = indexes.index_key AND died = 0);
CREATE TRIGGER version_is_born AFTER INSERT ON versions WHEN NEW.died = 0 BEGIN
  UPDATE indexes SET chunks_stored = chunks_stored + NEW.chunk_count WHERE index_key = NEW.index_key;
END;
CREATE TRIGGER version_dies AFTER UPDATE OF died ON versions WHEN OLD.died = 0 AND NEW.died > 0 BEGIN
  UPDATE indexes SET chunks_stored = chunks_stored - NEW.chunk_count WHERE index_key = NEW.index_key;
END;`;
/** Sessions of the console that were signed out. A row stays until the session would have expired. */
const endedSessions = `
CREATE TABLE ended_sessions (
  digest BLOB PRIMARY KEY,
  key_id TEXT NOT NULL REFERENCES api_keys (id) ON DELETE CASCADE,
  expires_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX ended_sessions_of_key ON ended_sessions (key_id);
CREATE INDEX ended_sessions_expired ON ended_sessions (expires_at_ms);`;

/** The index holds all that a count of expired documents needs. */
const expiry = `
ALTER TABLE versions ADD COLUMN expires_at_ms INTEGER;
CREATE INDEX versions_expiring ON versions (index_key, expires_at_ms, chunk_count)
  WHERE died = 0 AND expires_at_ms IS NOT NULL;`;

/** Absent = no limit beside those of the tenant. */
const keyLimits = `
ALTER TABLE api_keys ADD COLUMN requests_per_minute INTEGER CHECK (requests_per_minute >= 1);
ALTER TABLE api_keys ADD COLUMN max_concurrent_requests INTEGER CHECK (max_concurrent_requests >= 1);`;

/** Absent = it has no name, or was not used since this release. */
const keyNames = `
ALTER TABLE api_keys ADD COLUMN name TEXT;
ALTER TABLE api_keys ADD COLUMN last_used_at_ms INTEGER;`;

/** A JSON array of names. */
const matchFields = `
ALTER TABLE indexes ADD COLUMN match_fields TEXT NOT NULL DEFAULT '[]';`;

/** One row per writer: the number of its last committed transaction (see `group-commit.ts`). */
const commitMarkers = `
CREATE TABLE commit_markers (
  writer TEXT PRIMARY KEY,
  sequence INTEGER NOT NULL,
  at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;`;

export const catalogMigrations: Migrations = {
  database: 'catalog.db',
  steps: [
    `
CREATE TABLE catalog (
  singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
  id TEXT NOT NULL,
  key_pepper BLOB NOT NULL,
  commits INTEGER NOT NULL DEFAULT 0,
  next_id INTEGER NOT NULL DEFAULT 1
) STRICT;

CREATE TABLE tenants (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  suspended INTEGER NOT NULL CHECK (suspended IN (0, 1)),
  requests_per_minute INTEGER NOT NULL CHECK (requests_per_minute >= 0),
  max_concurrent_requests INTEGER NOT NULL CHECK (max_concurrent_requests >= 0),
  input_tokens INTEGER NOT NULL CHECK (input_tokens >= 0),
  documents_max INTEGER NOT NULL CHECK (documents_max >= 0),
  documents_stored INTEGER NOT NULL DEFAULT 0 CHECK (documents_stored >= 0),
  created_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE api_keys (
  id TEXT PRIMARY KEY,
  tenant_id TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  hash BLOB NOT NULL,
  created_at_ms INTEGER NOT NULL,
  revoked_at_ms INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX api_keys_of_tenant ON api_keys (tenant_id);

CREATE TABLE indexes (
  index_key INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  tenant_id TEXT NOT NULL REFERENCES tenants (id),
  name TEXT NOT NULL,
  model TEXT NOT NULL,
  model_version TEXT NOT NULL,
  max_tokens INTEGER NOT NULL,
  overlap_tokens INTEGER NOT NULL,
  minimum_chunk_tokens INTEGER NOT NULL,
  metadata_schema TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('creating', 'ready', 'error')),
  created_at_ms INTEGER NOT NULL,
  generation INTEGER NOT NULL DEFAULT 0,
  documents_stored INTEGER NOT NULL DEFAULT 0 CHECK (documents_stored >= 0),
  UNIQUE (tenant_id, name)
) STRICT;

CREATE TABLE segments (
  id INTEGER PRIMARY KEY,
  index_key INTEGER NOT NULL REFERENCES indexes (index_key) ON DELETE CASCADE,
  blob TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('active', 'sealed')),
  records_sealed INTEGER CHECK (records_sealed >= 0)
) STRICT;
CREATE INDEX segments_of_index ON segments (index_key);

CREATE TABLE versions (
  version_id INTEGER PRIMARY KEY,
  index_key INTEGER NOT NULL,
  segment_id INTEGER NOT NULL,
  record INTEGER NOT NULL CHECK (record BETWEEN 0 AND 4294967295),
  born INTEGER NOT NULL,
  died INTEGER NOT NULL DEFAULT 0,
  chunk_count INTEGER NOT NULL,
  token_vectors INTEGER NOT NULL,
  doc_id TEXT NOT NULL,
  metadata TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX versions_live ON versions (index_key, doc_id) WHERE died = 0;
CREATE INDEX versions_dead ON versions (index_key, died) WHERE died > 0;
CREATE INDEX versions_placed ON versions (index_key, segment_id, record, born, died);

CREATE TABLE purges (
  index_key INTEGER PRIMARY KEY
) STRICT;
${usageMonths}
${commitMarkers}`,
    `
ALTER TABLE api_keys ADD COLUMN access TEXT NOT NULL DEFAULT 'full' CHECK (access IN ('full', 'read'));
CREATE INDEX tenants_by_age ON tenants (created_at_ms, id);

CREATE TABLE audit_log (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at_ms INTEGER NOT NULL,
  actor TEXT NOT NULL,
  act TEXT NOT NULL,
  tenant_id TEXT,
  detail TEXT NOT NULL
) STRICT;
CREATE INDEX audit_of_tenant ON audit_log (tenant_id, id);
${usageDays}`,
    chunksStored,
    endedSessions,
    expiry,
    keyLimits,
    keyNames,
    matchFields,
  ],
};

export const usageMigrations: Migrations = {
  database: 'usage.db',
  steps: [usageMonths, usageDays],
};

/** Brings a database to the newest version in one transaction: that of the caller if there is one. */
export function migrate(connection: Connection, migrations: Migrations): void {
  const newest = migrations.steps.length;
  const versionOf = (): number => connection.pragma('user_version', { simple: true }) as number;
  const refuseNewer = (version: number): void => {
    if (version > newest) {
      throw new ServiceError(
        'service_unavailable',
        `${migrations.database} has schema version ${version}, this program knows ${newest}: it was written by a newer maxsimd`,
      );
    }
  };
  refuseNewer(versionOf());
  if (versionOf() === newest) return;
  connection
    .transaction(() => {
      const version = versionOf();
      refuseNewer(version);
      for (const step of migrations.steps.slice(version)) connection.exec(step);
      connection.pragma(`user_version = ${newest}`);
    })
    .immediate();
}
