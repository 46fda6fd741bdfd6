/** Reads and writes the contents of a catalog (`../contents.ts`) that nodes share. */
import {
  columnsOf,
  selectFrom,
  tableNames,
  type CatalogContents,
  type ColumnKind,
  type ContentSegment,
  type Row,
  type TableName,
  type Value,
} from '../contents.ts';
import type { SegmentFile } from '../../contracts/index-state.ts';
import { fingerprintOf } from '../key-pepper.ts';
import { type Database, type Queries, statements } from './database.ts';
import { unplaced, type Unplaced } from './reads/unplaced.ts';
import { placeNow } from './functions.ts';

export interface SharedSegment extends ContentSegment {
  readonly files: readonly SegmentFile[];
}

/** One moment of the catalog. */
export interface SharedContents extends CatalogContents {
  readonly catalogId: string;
  readonly segments: readonly SharedSegment[];
  /** These documents are not in the contents. */
  readonly unplaced: readonly Unplaced[];
}

export interface RestoredSegment extends Pick<ContentSegment, 'id' | 'indexKey'> {
  readonly blob: string;
  readonly records: number;
  readonly files: readonly SegmentFile[];
}

/** Rows of a batch: a thousand documents with their metadata. */
const batchRows = 1_000;

const sql = statements({
  occupied: `SELECT EXISTS (SELECT FROM tenants) AS tenants,
    EXISTS (SELECT FROM versions) OR EXISTS (SELECT FROM segments WHERE id > 0) AS rest`,
  noteUploads: `INSERT INTO segments (id, index_key, blob, state)
    SELECT -nextval('ids'), 0, blob, 'uploading' FROM unnest($1::text[]) AS blob RETURNING id`,
  restoreSegments: `INSERT INTO segments (id, index_key, blob, state, records_sealed, files)
    SELECT id, index_key, blob, 'sealed', records, files
    FROM jsonb_to_recordset($1) AS r(id bigint, index_key bigint, blob text, records bigint, files jsonb)`,
});

/** Runs `work` on the contents of one moment. It must not use them after it has settled. */
export function readContents<T>(
  database: Database,
  work: (contents: SharedContents) => Promise<T>,
): Promise<T> {
  return database.transaction(async (queries) => {
    const run = (text: string) => queries.rows<Record<string, unknown>>({ name: '', text });
    const [catalog] = await run('SELECT id, key_pepper FROM catalog');
    // A sequence has no moments: this value may be later, but never earlier.
    const [ids] = await run('SELECT last_value FROM ids');
    const segments = await queries.rows<SharedSegment>({
      name: '',
      text: `SELECT s.id, s.index_key AS "indexKey", i.id AS "indexId", s.blob, s.state, s.files,
          s.records_sealed AS "recordsReferenced"
        FROM segments s JOIN indexes i USING (index_key)
        WHERE s.state = 'sealed' AND EXISTS (
          SELECT FROM placements p JOIN versions v USING (version_id) WHERE p.segment_id = s.id AND v.died = 0)
        ORDER BY s.id`,
    });
    return await work({
      catalogId: catalog?.['id'] as string,
      pepperFingerprint: catalog?.['key_pepper'] as Buffer,
      nextId: Number(ids?.['last_value']) + 1,
      segments,
      unplaced: await unplaced(queries),
      rows: (table) => rowsOf(queries, table),
    });
  }, 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
}

async function* rowsOf(queries: Queries, table: TableName): AsyncGenerator<readonly Row[]> {
  const columns = columnsOf(table);
  const selected = columns.map(([name, kind]) => readers[kind].sql(name)).join(', ');
  const run = (text: string) => queries.rows<Record<string, unknown>>({ name: '', text });
  await run(
    `DECLARE contents NO SCROLL CURSOR FOR SELECT ${selected} FROM ${sourceOf(table)} ${selectFrom(table)}`,
  );
  for (;;) {
    const rows = await run(`FETCH ${batchRows} FROM contents`);
    if (rows.length > 0) yield rows.map((row) => columns.map(([name, kind]) => valueOf(row[name], kind)));
    if (rows.length < batchRows) break;
  }
  await run('CLOSE contents');
}

const placeColumns = new Set(['segment_id', 'record']);

/** In the contents a version and its place are one row. */
function sourceOf(table: TableName): string {
  return table === 'versions'
    ? `(SELECT v.*, place.* FROM versions v CROSS JOIN ${placeNow}) AS versions`
    : table;
}

/** Integers are read as text, because they may exceed 2^53. */
const readers: Readonly<
  Record<ColumnKind, { sql(name: string): string; value(found: unknown): Exclude<Value, null> }>
> = {
  integer: { sql: (name) => `${name}::text AS ${name}`, value: (found) => BigInt(found as string) },
  flag: { sql: (name) => name, value: (found) => BigInt(found as boolean) },
  text: { sql: (name) => name, value: (found) => found as string },
  name: { sql: (name) => name, value: (found) => (found as Buffer).toString() },
  bytes: { sql: (name) => name, value: (found) => found as Buffer },
};

function valueOf(found: unknown, kind: ColumnKind): Value {
  return found === null ? null : readers[kind].value(found);
}

const writers: Readonly<
  Record<ColumnKind, { readonly type: string; value(value: Exclude<Value, null>): unknown }>
> = {
  integer: { type: 'bigint', value: (value) => value },
  flag: { type: 'boolean', value: (value) => value !== 0n },
  text: { type: 'text', value: (value) => value },
  name: { type: 'bytea', value: (value) => Buffer.from(value as string) },
  bytes: { type: 'bytea', value: (value) => Buffer.from(value as Uint8Array) },
};

function notEmpty(why: string): string {
  return `the catalog is not empty: ${why}. A restore needs a database of its own`;
}

/** Why nothing can be restored here. `undefined` when the catalog is empty. */
export async function occupied(queries: Queries): Promise<string | undefined> {
  const [found] = await queries.rows<Record<'tenants' | 'rest', boolean>>(sql.occupied);
  if (found?.tenants === true) return notEmpty('it has tenants');
  return found?.rest === true ? notEmpty('what was deleted from it has not been removed yet') : undefined;
}

/**
 * Notes objects that are about to be put for a restore. If the restore does not end, they are deleted as any upload that
 * nothing names. Their rows have ids below zero, because the ids of the archive's segments are used at the end.
 */
export async function noteUploads(queries: Queries, blobs: readonly string[]): Promise<readonly number[]> {
  const rows = await queries.rows<{ id: number }>(sql.noteUploads, [blobs]);
  return rows.map(({ id }) => id);
}

export interface Restored {
  readonly contents: CatalogContents;
  readonly segments: readonly RestoredSegment[];
  /** From `noteUploads`. */
  readonly uploads: readonly number[];
  /** The pepper of the nodes. */
  readonly keyPepper: Uint8Array;
  /** The pepper of the archive's keys is another one. */
  readonly voidKeys: boolean;
}

/** Fills an empty catalog in one transaction, all or nothing. Returns why that is refused; `undefined` when it is done. */
export function writeContents(database: Database, restored: Restored): Promise<string | undefined> {
  const { contents, segments, uploads, keyPepper, voidKeys } = restored;
  return database.transaction(async (queries) => {
    const run = (text: string, values: readonly unknown[] = []) =>
      queries.rows<Record<string, unknown>>({ name: '', text }, values);
    // No tenant is created meanwhile.
    await run('LOCK TABLE tenants IN SHARE ROW EXCLUSIVE MODE');
    const refusal = await occupied(queries);
    if (refusal !== undefined) return refusal;
    const named = await run(`DELETE FROM segments WHERE id = ANY($1) AND state = 'uploading' RETURNING id`, [
      uploads,
    ]);
    if (named.length !== uploads.length)
      return 'the restore took longer than a day, and its objects are garbage now';
    for (const table of tableNames) {
      if (table === 'usage_days') await run('DELETE FROM usage_days');
      for await (const rows of contents.rows(table)) await insertRows(queries, table, rows);
    }
    for (let first = 0; first < segments.length; first += batchRows) {
      await insertSegments(queries, segments.slice(first, first + batchRows));
    }
    await run('UPDATE catalog SET key_pepper = $1', [Buffer.from(fingerprintOf(keyPepper))]);
    if (voidKeys) {
      await run('UPDATE api_keys SET revoked_at_ms = $1 WHERE revoked_at_ms IS NULL', [Date.now()]);
    }
    await run(`SELECT setval('ids', greatest($1, (SELECT last_value FROM ids)))`, [contents.nextId]);
    await run(`SELECT setval(pg_get_serial_sequence('indexes', 'index_key'),
      greatest((SELECT max(index_key) FROM indexes), 1))`);
    await run(`SELECT setval(pg_get_serial_sequence('audit_log', 'id'),
      greatest((SELECT max(id) FROM audit_log), 1))`);
    // The planner needs statistics of the new rows.
    await run('ANALYZE indexes, segments, versions, placements');
    return undefined;
  });
}

async function insertRows(queries: Queries, table: TableName, rows: readonly Row[]): Promise<void> {
  const columns = columnsOf(table);
  const names = columns.map(([name]) => name).join(', ');
  const arrays = columns.map(([, kind], place) => `$${place + 1}::${writers[kind].type}[]`).join(', ');
  const values = columns.map(([, kind], place) =>
    rows.map((row) => {
      const value = row[place] ?? null;
      return value === null ? null : writers[kind].value(value);
    }),
  );
  const own = columns
    .flatMap(([name]) => (table === 'versions' && placeColumns.has(name) ? [] : name))
    .join(', ');
  const text = `WITH rows AS (SELECT * FROM unnest(${arrays}) AS rows(${names}))
    ${table === 'versions' ? ', placed AS (INSERT INTO placements SELECT segment_id, record, version_id FROM rows)' : ''}
    INSERT INTO ${table} (${own}) OVERRIDING SYSTEM VALUE SELECT ${own} FROM rows`;
  await queries.rows({ name: `restore-${table}`, text }, values);
}

async function insertSegments(queries: Queries, segments: readonly RestoredSegment[]): Promise<void> {
  const rows = segments.map(({ indexKey, ...segment }) => ({ ...segment, index_key: indexKey }));
  await queries.rows(sql.restoreSegments, [JSON.stringify(rows)]);
}
