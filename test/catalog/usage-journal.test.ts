/** Usage between its recording and `usage.db`: it counts once, whoever reads, folds, dies or starts again. */
import Database from 'better-sqlite3';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync } from 'node:fs';
import { appendFile, readFile, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { openCatalog } from '../../src/catalog/sqlite/open-catalog.ts';
import type { SqliteCatalog } from '../../src/catalog/sqlite/open-catalog.ts';
import { OpenJournals, UsageJournal } from '../../src/catalog/sqlite/usage-journal.ts';
import { newDirectory } from '../temporary-directory.ts';
import { newCatalog, nodeWithFileLimit } from './stage.ts';
import { month, usageOf } from './fixture.ts';

const journalModule = path.join(import.meta.dirname, '../../src/catalog/sqlite/usage-journal.ts');
const opened: SqliteCatalog[] = [];

async function open(directory: string): Promise<SqliteCatalog> {
  const catalog = await openCatalog({ directory });
  opened.push(catalog);
  return catalog;
}

function journals(directory: string): string[] {
  return readdirSync(directory).filter((name) => name.endsWith('.journal'));
}

/** Of `usage.db` alone. */
function foldedRequests(directory: string): number {
  const database = new Database(path.join(directory, 'usage.db'), { readonly: true });
  try {
    return database.prepare<[], number>('SELECT total(requests) FROM usage_months').pluck().get() ?? 0;
  } finally {
    database.close();
  }
}

/** Events in the journals, folded or not. */
function eventsIn(directory: string): number {
  const found = new OpenJournals(directory);
  try {
    return [...found.unfolded(() => 0)]
      .flatMap(({ events }) => events)
      .reduce((sum, { requests = 0 }) => sum + requests, 0);
  } finally {
    found.close();
  }
}

afterEach(async () => {
  for (const catalog of opened.splice(0)) await catalog.close();
});

describe('the journal of usage', () => {
  it('counts once while openers read and fold it again and again', async () => {
    const { directory, tenantId } = await newCatalog();
    const server = await open(directory);
    for (let recorded = 1; recorded <= 20; recorded++) {
      await server.recordUsage(usageOf(tenantId, { requests: 1, searches: 1, inputTokens: 2n ** 55n }));
      // Opening folds what there is.
      const other = await open(directory);
      for (const catalog of [server, other]) {
        expect(await catalog.usageTotals(tenantId, month)).toMatchObject({
          requests: recorded,
          searches: recorded,
          inputTokens: 2n ** 55n * BigInt(recorded),
        });
      }
      expect(foldedRequests(directory)).toBe(recorded);
    }
  });

  it('is folded and gone when its catalog is closed', async () => {
    const { directory, tenantId } = await newCatalog();
    const catalog = await open(directory);
    await catalog.recordUsage(usageOf(tenantId, { requests: 3 }));
    expect(journals(directory)).toHaveLength(1);
    await catalog.close();
    expect(journals(directory)).toEqual([]);
    expect(foldedRequests(directory)).toBe(3);
  });

  it('counts what a process that was killed recorded, and not the record it was writing', async () => {
    const { directory, tenantId } = await newCatalog();
    const killed = new UsageJournal(directory);
    killed.append(usageOf(tenantId, { requests: 1, inputTokens: 7n }));
    killed.append(usageOf(tenantId, { requests: 1 }));
    const [name = ''] = journals(directory);
    const whole = await readFile(path.join(directory, name));
    await appendFile(path.join(directory, name), whole.subarray(0, whole.length / 2 - 1));
    const catalog = await open(directory);
    expect(foldedRequests(directory)).toBe(2);
    expect(await catalog.usageTotals(tenantId, month)).toMatchObject({ requests: 2, inputTokens: 7n });
  });

  it('ends at a record whose checksum is wrong', async () => {
    const { directory, tenantId } = await newCatalog();
    const journal = new UsageJournal(directory);
    for (let count = 0; count < 3; count++) journal.append(usageOf(tenantId, { requests: 1 }));
    const [name = ''] = journals(directory);
    const bytes = await readFile(path.join(directory, name));
    bytes[Math.floor(bytes.length / 2)]! ^= 1;
    await writeFile(path.join(directory, name), bytes);
    const catalog = await open(directory);
    expect(await catalog.usageTotals(tenantId, month)).toMatchObject({ requests: 1 });
  });

  it('refuses what it cannot write, counts nothing of it, and takes what comes after', async () => {
    const { tenantId } = await newCatalog();
    const directory = path.join(await newDirectory(), 'not there yet');
    const journal = new UsageJournal(directory);
    const event = usageOf(tenantId, { requests: 1 });
    expect(() => journal.append(event)).toThrow(
      expect.objectContaining({ code: 'service_unavailable', retryAfterSeconds: 1 }),
    );
    mkdirSync(directory);
    journal.append(event);
    expect(eventsIn(directory)).toBe(1);
  });

  it('counts nothing of a record that was written in part', async () => {
    const directory = await newDirectory();
    const program = `
      import { UsageJournal } from ${JSON.stringify(journalModule)};
      const journal = new UsageJournal(process.argv[1]);
      for (let i = 0; i < 40; i++) {
        try {
          journal.append({ tenantId: 'tenant', month: '2026-10', requests: 1 });
          console.log('recorded');
        } catch (error) {
          console.log(error.code);
        }
      }`;
    const { stdout } = spawnSync(...nodeWithFileLimit(1, ['--input-type=module', '-e', program, directory]), {
      encoding: 'utf8',
    });
    const outcomes = stdout.trim().split('\n');
    expect(outcomes).toHaveLength(40);
    expect(new Set(outcomes)).toEqual(new Set(['recorded', 'service_unavailable']));
    expect(eventsIn(directory)).toBe(outcomes.filter((outcome) => outcome === 'recorded').length);
  });

  it('goes on in a new file after an hour without an event', async () => {
    const { directory, tenantId } = await newCatalog();
    let nowMs = 0;
    const journal = new UsageJournal(directory, () => nowMs);
    const event = usageOf(tenantId, { requests: 1 });
    journal.append(event);
    nowMs += 3_599_999;
    journal.append(event);
    expect(journals(directory)).toHaveLength(1);
    nowMs += 3_600_000;
    journal.open();
    expect(journals(directory)).toHaveLength(1);
    journal.append(event);
    expect(journals(directory)).toHaveLength(2);
    expect(eventsIn(directory)).toBe(3);
    const left = journal.takeLeft();
    expect(left).toHaveLength(1);
    journal.remove(left);
    expect(eventsIn(directory)).toBe(1);
  });

  it('is removed by the next opener once nobody has used it for a day', async () => {
    const { directory, tenantId } = await newCatalog();
    new UsageJournal(directory).append(usageOf(tenantId, { requests: 1 }));
    await (await open(directory)).close();
    expect(journals(directory)).toHaveLength(1);
    const [name = ''] = journals(directory);
    const yesterday = Date.now() / 1000 - 90_000;
    await utimes(path.join(directory, name), yesterday, yesterday);
    const catalog = await open(directory);
    expect(journals(directory)).toEqual([]);
    expect(await catalog.usageTotals(tenantId, month)).toMatchObject({ requests: 1 });
  });

  it('of an erased tenant is erased with it', async () => {
    const { directory, tenantId } = await newCatalog();
    const [server, commandLine] = [await open(directory), await open(directory)];
    await server.recordUsage(usageOf(tenantId, { requests: 1 }));
    await commandLine.deleteTenant(tenantId);
    expect(await server.usageTotals(tenantId, month)).toMatchObject({ requests: 0 });
    await server.close();
    expect(foldedRequests(directory)).toBe(0);
  });

  it('comes to a database of before it had one', async () => {
    const { directory, tenantId } = await newCatalog();
    const before = await open(directory);
    await before.recordUsage(usageOf(tenantId, { requests: 5 }));
    await before.close();
    const database = new Database(path.join(directory, 'usage.db'));
    database.exec('DROP TABLE usage_journals; PRAGMA user_version = 1');
    database.close();
    const catalog = await open(directory);
    await catalog.recordUsage(usageOf(tenantId, { requests: 1 }));
    expect(await catalog.usageTotals(tenantId, month)).toMatchObject({ requests: 6 });
  });
});
