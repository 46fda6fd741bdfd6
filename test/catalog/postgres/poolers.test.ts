/** A pooler between a node and PostgreSQL must leave it its settings, its prepared statements and its sessions. */
import { createServer, connect, type AddressInfo, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { isRefusal, whyAway } from '../../../src/away-reasons.ts';
import { openDatabase, type Database, type DatabaseOptions } from '../../../src/catalog/postgres/database.ts';
import { openPostgresCatalog } from '../../../src/catalog/postgres/open-catalog.ts';
import { newSharedDatabase, queryDatabase } from '../../support/cluster/servers.ts';
import { newIndex, newTenant } from '../../support/stages/catalog-fixture.ts';

const keyPepper = new Uint8Array(32);

function open(options: DatabaseOptions): Database {
  const database = openDatabase(options);
  onTestFinished(() => database.close());
  return database;
}

async function settingsOf(options: DatabaseOptions): Promise<unknown> {
  const names = ['statement_timeout', 'lock_timeout', 'enable_seqscan', 'enable_hashjoin', 'jit'];
  const text = `SELECT name, setting FROM pg_settings WHERE name = ANY($1)`;
  const rows = await open(options).rows<{ name: string; setting: string }>({ name: 'settings', text }, [
    names,
  ]);
  return Object.fromEntries(rows.map(({ name, setting }) => [name, setting]));
}

it('every connection that serves has its settings, whatever the URL says', async () => {
  const url = `${await newSharedDatabase()}?options=${encodeURIComponent('-c enable_seqscan=on')}&statement_timeout=5000`;
  const serving = {
    statement_timeout: '60000',
    lock_timeout: '15000',
    enable_seqscan: 'off',
    enable_hashjoin: 'off',
    jit: 'off',
  };
  expect(await settingsOf({ url })).toEqual(serving);
  expect(await settingsOf({ url, use: 'scans' })).toEqual({ ...serving, statement_timeout: '30000' });
  expect(await settingsOf({ url, isPatient: true })).toMatchObject({
    statement_timeout: '5000',
    enable_seqscan: 'on',
  });
});

/** As PgBouncer does by default: it refuses a connection that brings other settings. Returns the URL. */
async function startStrictPooler(url: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const taken = new Set(['user', 'database', 'client_encoding', 'application_name']);
  const server = createServer((client) => {
    client.once('data', (startup) => {
      // Length and version are 8 bytes. Names and values follow, each ended by a zero.
      const words = startup.subarray(8).toString().split('\0');
      const other = words.find((word, place) => place % 2 === 0 && word !== '' && !taken.has(word));
      if (other === undefined) join(client, connect(Number(port), hostname), startup);
      else client.end(refusalOf(other));
    });
  });
  await new Promise<void>((listening) => void server.listen(0, '127.0.0.1', listening));
  onTestFinished(() => void server.close());
  return Object.assign(new URL(url), { port: String((server.address() as AddressInfo).port) }).href;
}

function join(client: Socket, upstream: Socket, first: Buffer): void {
  upstream.write(first);
  client.pipe(upstream).pipe(client);
  client.on('error', () => upstream.destroy());
  upstream.on('error', () => client.destroy());
}

function refusalOf(parameter: string): Buffer {
  const fields = ['SFATAL', 'C08P01', `Munsupported startup parameter: ${parameter}`, '', ''].join('\0');
  const head = Buffer.from('E\0\0\0\0');
  head.writeUInt32BE(4 + Buffer.byteLength(fields), 1);
  return Buffer.concat([head, Buffer.from(fields)]);
}

it('a pooler that takes no settings with a connection serves; one that is asked for more is named', async () => {
  const url = await startStrictPooler(await newSharedDatabase());
  const catalog = await openPostgresCatalog({ url, keyPepper });
  expect(await settingsOf({ url })).toMatchObject({ enable_seqscan: 'off' });
  await catalog.close();
  const asking = openPostgresCatalog({ url: `${url}?lock_timeout=1000`, keyPepper });
  await expect(asking).rejects.toThrow(
    /^the catalog cannot be reached: it does not accept the settings of a connection: a pooler\?$/,
  );
});

it('prepared statements that are there already, or gone, mean shared sessions', async () => {
  const database = open({ url: await newSharedDatabase() });
  const run = (text: string, name = '') => database.rows({ name, text });
  const known = 'SELECT 1';
  // One after the other, they have one connection.
  await run(known, 'known');
  await run('DEALLOCATE ALL');
  const gone: unknown = await run(known, 'known').catch((error: unknown) => error);
  await run(`PREPARE planted AS ${known}`);
  const there: unknown = await run(known, 'planted').catch((error: unknown) => error);
  for (const error of [gone, there]) {
    expect(error).toMatchObject({ code: 'service_unavailable' });
    expect([whyAway(error), isRefusal(error)]).toEqual([
      'shares sessions between clients: a pooler in transaction mode',
      true,
    ]);
  }
});

it('a pooler that answers writes and keeps none ends the start', async () => {
  const url = await newSharedDatabase();
  await (await openPostgresCatalog({ url, keyPepper })).close();
  await queryDatabase(
    url,
    `DELETE FROM catalog;
    CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
    CREATE TRIGGER lose BEFORE INSERT ON catalog FOR EACH ROW EXECUTE FUNCTION lose()`,
  );
  await expect(openPostgresCatalog({ url, keyPepper })).rejects.toThrow(
    /answers writes and does not keep them/,
  );
});

it('a catalog without an epoch is a defect', async () => {
  const url = await newSharedDatabase();
  const catalog = await openPostgresCatalog({ url, keyPepper });
  onTestFinished(() => catalog.close());
  const { id } = await newIndex(catalog, (await newTenant(catalog)).id);
  await queryDatabase(url, 'DELETE FROM catalog');
  const defect = 'this is a bug: the catalog has no epoch';
  await expect(catalog.readHead(id)).rejects.toThrow(defect);
  await expect(catalog.acquireMergeLease(id, 'node', 1_000)).rejects.toThrow(defect);
  await expect(catalog.heartbeat({ id: 'n', name: 'n', report: '{}' }, 1_000)).rejects.toThrow(defect);
});
