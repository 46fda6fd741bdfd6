/** Usage is written to `usage.db`, or waits in memory until that is possible. It counts once, and a broken ledger stops no request. */
import Database from 'better-sqlite3';
import { readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { openCatalog } from '../../../src/catalog/sqlite/open-catalog.ts';
import type { SqliteCatalog } from '../../../src/catalog/sqlite/open-catalog.ts';
import { usageProblems } from '../../../src/catalog/sqlite/usage/usage-store.ts';
import { createRandom } from '../../support/running/random.ts';
import { eventually } from '../../support/running/eventually.ts';
import { DocumentWriter, month, usageOf } from '../../support/stages/catalog-fixture.ts';
import { newCatalog } from '../../support/stages/catalog-stage.ts';

const opened: SqliteCatalog[] = [];
const notices: string[] = [];

async function open(directory: string, owned = true): Promise<SqliteCatalog> {
  const catalog = await openCatalog({ directory, owned, onNotice: (notice) => notices.push(notice) });
  opened.push(catalog);
  return catalog;
}

/** Opens `usage.db` a second time. */
function openBeside(directory: string): Database.Database {
  return new Database(path.join(directory, 'usage.db'));
}

/** Counts what `usage.db` alone holds. */
function requestsWritten(directory: string): number {
  const database = openBeside(directory);
  try {
    return database.prepare<[], number>('SELECT total(requests) FROM usage_months').pluck().get() ?? 0;
  } finally {
    database.close();
  }
}

async function whenNothingWaits(catalog: SqliteCatalog): Promise<void> {
  await eventually(() => catalog.usageWaiting() === 0);
}

function setAside(directory: string): readonly string[] {
  return readdirSync(directory).filter((name) => /^usage\.db\.damaged-[^.]+$/.test(name));
}

afterEach(async () => {
  for (const catalog of opened.splice(0)) await catalog.close();
  notices.length = 0;
});

describe('usage', () => {
  it('is in the database when it is recorded', async () => {
    const { directory, tenantId } = await newCatalog();
    const catalog = await open(directory);
    for (let recorded = 1; recorded <= 20; recorded++) {
      await catalog.recordUsage(usageOf(tenantId, { requests: 1 }));
      expect(requestsWritten(directory)).toBe(recorded);
    }
  });

  it('counts once, and its log stays short, over thousands of events', async () => {
    const { directory, tenantId } = await newCatalog();
    const catalog = await open(directory);
    const event = usageOf(tenantId, { requests: 1, searches: 1, inputTokens: 2n ** 40n });
    const events = 10_000;
    for (let recorded = 0; recorded < events; recorded += 20) {
      await Promise.all(Array.from({ length: 20 }, () => catalog.recordUsage(event)));
    }
    expect(await catalog.usageTotals(tenantId, month)).toMatchObject({
      requests: events,
      searches: events,
      inputTokens: 2n ** 40n * BigInt(events),
    });
    // On a slow disk the restart of the log may take longer than requests wait.
    await whenNothingWaits(catalog);
    expect(requestsWritten(directory)).toBe(events);
    expect(statSync(path.join(directory, 'usage.db-wal')).size).toBeLessThan(4_100 * 4_120);
  });

  it('waits without holding the event loop while another process has the lock', async () => {
    const { directory, tenantId } = await newCatalog();
    const catalog = await open(directory);
    const other = openBeside(directory);
    other.exec('BEGIN IMMEDIATE');
    const order: string[] = [];
    const began = performance.now();
    const recorded = Promise.all(
      [1, 2, 3].map(() => catalog.recordUsage(usageOf(tenantId, { requests: 1 }))),
    ).then(() => order.push('recorded'));
    expect(performance.now() - began).toBeLessThan(1_000);
    expect(await catalog.usageTotals(tenantId, month)).toMatchObject({ requests: 3 });
    order.push('unlocked');
    other.exec('COMMIT');
    other.close();
    await recorded;
    expect(order).toEqual(['unlocked', 'recorded']);
    expect(requestsWritten(directory)).toBe(3);
    expect(notices).toEqual([]);
  });

  it('is kept in memory while the lock is held for long, and written when it is free', async () => {
    const { directory, tenantId } = await newCatalog();
    const catalog = await open(directory);
    const other = openBeside(directory);
    other.exec('BEGIN IMMEDIATE');
    await Promise.all([1, 2].map(() => catalog.recordUsage(usageOf(tenantId, { requests: 1 }))));
    expect(catalog.usageWaiting()).toBe(1);
    expect(notices).toEqual(['usage waits in memory to be written']);
    other.exec('COMMIT');
    other.close();
    await whenNothingWaits(catalog);
    expect(requestsWritten(directory)).toBe(2);
    expect(notices.at(-1)).toBe('usage is written to the disk again');
  });

  it('of an erased tenant is erased with it, also usage that waits', async () => {
    const { directory, tenantId } = await newCatalog();
    const catalog = await open(directory);
    await catalog.recordUsage(usageOf(tenantId, { requests: 1 }));
    const other = openBeside(directory);
    other.exec('BEGIN IMMEDIATE');
    const waiting = catalog.recordUsage(usageOf(tenantId, { requests: 1 }));
    await catalog.deleteTenant(tenantId);
    other.exec('COMMIT');
    other.close();
    await waiting;
    expect(await catalog.usageTotals(tenantId, month)).toMatchObject({ requests: 0 });
    await eventually(() => requestsWritten(directory) === 0);
  });
});

describe('a damaged usage ledger', () => {
  const damage = (directory: string): void =>
    writeFileSync(path.join(directory, 'usage.db'), 'x'.repeat(8192));

  it('is set aside by its owner, and the share of the catalog is still counted', async () => {
    const { directory, tenantId } = await newCatalog();
    const before = await open(directory);
    const writer = await DocumentWriter.start(before, tenantId);
    const usage = usageOf(tenantId, { requests: 1, inputTokens: 5n, documentUpserts: 1 });
    await writer.commit(await writer.versions(['a']), { usage });
    await before.recordUsage(usageOf(tenantId, { requests: 1 }));
    await before.close();
    expect(await usageProblems(directory)).toEqual([]);
    damage(directory);
    expect(await usageProblems(directory)).toMatchObject([{ file: 'usage.db' }]);
    const catalog = await open(directory);
    const [name = ''] = setAside(directory);
    expect(readFileSync(path.join(directory, name), 'utf8')).toBe('x'.repeat(8192));
    expect(notices).toEqual([expect.stringContaining(name)]);
    expect(await usageProblems(directory)).toMatchObject([{ file: name }]);
    await catalog.recordUsage(usageOf(tenantId, { requests: 1 }));
    expect(await catalog.usageTotals(tenantId, month)).toMatchObject({ requests: 2, inputTokens: 5n });
  });

  it('is set aside when the damage shows while it is in use', async () => {
    const { directory, tenantId } = await newCatalog();
    const catalog = await open(directory);
    await catalog.recordUsage(usageOf(tenantId, { requests: 1 }));
    const other = openBeside(directory);
    // Makes the ledger read its pages again.
    other.exec("INSERT INTO usage_months SELECT 'other', month, 1, 1, 1, 1, 1, NULL FROM usage_months");
    other.pragma('wal_checkpoint(TRUNCATE)');
    other.close();
    const file = path.join(directory, 'usage.db');
    const bytes = readFileSync(file);
    writeFileSync(file, bytes.fill(0xa5, 4096));
    await catalog.recordUsage(usageOf(tenantId, { requests: 1 }));
    await whenNothingWaits(catalog);
    expect(setAside(directory)).toHaveLength(1);
    expect(requestsWritten(directory)).toBe(1);
    await catalog.recordUsage(usageOf(tenantId, { requests: 1 }));
    expect(await catalog.usageTotals(tenantId, month)).toMatchObject({ requests: 2 });
    expect(await usageProblems(directory)).toHaveLength(1);
  });

  it('is left where it is by a process that does not own the directory', async () => {
    const { directory, tenantId } = await newCatalog();
    damage(directory);
    const catalog = await open(directory, false);
    expect(await catalog.getTenant(tenantId)).toBeDefined();
    await catalog.deleteTenant(tenantId);
    expect(setAside(directory)).toEqual([]);
  });

  it('never stops a start, although bits are flipped, its end is cut, or pages are overwritten', async () => {
    const random = createRandom(Date.now() % 100_000);
    const { directory, tenantId } = await newCatalog();
    const whole = await open(directory);
    for (let tenant = 0; tenant < 300; tenant++) {
      await whole.recordUsage({ tenantId: `${tenantId}-${tenant}`, month, requests: 1 });
    }
    await whole.recordUsage(usageOf(tenantId, { requests: 1 }));
    await whole.close();
    const file = path.join(directory, 'usage.db');
    const intact = readFileSync(file);
    for (let round = 0; round < 24; round++) {
      let bytes = Buffer.from(intact);
      // Half of the damage is in the header of the file and the page of the schema.
      const at = random.integer(0, round % 2 === 0 ? 200 : bytes.length - 1);
      if (round % 3 === 0) bytes = bytes.subarray(0, at);
      else if (round % 3 === 1) bytes.fill(random.integer(0, 255), at, at + 64);
      else bytes[at] = (bytes[at] ?? 0) ^ (1 << random.integer(0, 7));
      // A ledger that claims to be of a newer program is refused.
      intact.copy(bytes, 60, 60, 64);
      for (const name of readdirSync(directory))
        if (name.startsWith('usage.db')) rmSync(path.join(directory, name));
      writeFileSync(file, bytes);
      const catalog = await open(directory);
      const event = usageOf('after the damage', { requests: 1 });
      await catalog.recordUsage(event);
      expect(await catalog.usageTotals(event.tenantId, month), `seed ${random.seed}`).toMatchObject({
        requests: 1,
      });
      await catalog.close();
      expect(requestsWritten(directory)).toBeGreaterThan(0);
    }
  });
});

describe('usage that cannot be written', () => {
  it('is refused once the memory for it is full, and usage of known tenants still counts', async () => {
    const { directory } = await newCatalog();
    writeFileSync(path.join(directory, 'usage.db'), 'x'.repeat(8192));
    const catalog = await open(directory, false);
    for (let tenant = 0; tenant < 10_000; tenant++) {
      await catalog.recordUsage(usageOf(`tenant ${tenant}`, { requests: 1 }));
    }
    await expect(catalog.recordUsage(usageOf('one too many', { requests: 1 }))).rejects.toMatchObject({
      code: 'service_unavailable',
      retryAfterSeconds: 1,
    });
    await catalog.recordUsage(usageOf('tenant 5', { requests: 1 }));
    expect(catalog.usageWaiting()).toBe(10_000);
  });

  it('is said to be lost when the process ends', async () => {
    const { directory, tenantId } = await newCatalog();
    writeFileSync(path.join(directory, 'usage.db'), 'x'.repeat(8192));
    const catalog = await open(directory, false);
    await catalog.recordUsage(usageOf(tenantId, { requests: 1 }));
    await catalog.close();
    expect(notices.at(-1)).toMatch(/usage of 1 tenants .* lost/);
  });
});
