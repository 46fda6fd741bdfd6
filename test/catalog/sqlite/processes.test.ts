/** Processes that share a catalog, are killed, or run out of space. Acknowledged writes stay, and no write is there in part. */
import Database from 'better-sqlite3';
import { spawn } from 'node:child_process';
import type { ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { openCatalog } from '../../../src/catalog/sqlite/open-catalog.ts';
import type { SqliteCatalog } from '../../../src/catalog/sqlite/open-catalog.ts';
import { newCatalog, nodeWithFileLimit } from '../../support/stages/catalog-stage.ts';
import { month, newTenant } from '../../support/stages/catalog-fixture.ts';

const program = path.join(import.meta.dirname, 'commit-process.ts');

class CommitProcess {
  indexId = '';
  readonly started = new Set<number>();
  readonly acknowledged = new Map<number, number>();
  readonly failed: string[] = [];
  recorded = 0;
  done = false;
  readonly #child: ChildProcessByStdio<null, Readable, null>;
  readonly #closed: Promise<unknown>;

  constructor(
    args: readonly string[],
    options: { readonly onLine?: (process: CommitProcess) => void; readonly fileKibMax?: number } = {},
  ) {
    this.#child = spawn(...nodeWithFileLimit(options.fileKibMax ?? 'unlimited', [program, ...args]), {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const lines = createInterface({ input: this.#child.stdout });
    lines.on('line', (line) => {
      this.#note(line);
      options.onLine?.(this);
    });
    this.#closed = Promise.all([once(this.#child, 'close'), once(lines, 'close')]);
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }

  async ended(): Promise<void> {
    await this.#closed;
  }

  #note(line: string): void {
    const [event = '', first = '', second = ''] = line.split(' ');
    if (event === 'index') this.indexId = first;
    else if (event === 'start') this.started.add(Number(first));
    else if (event === 'ack') this.acknowledged.set(Number(first), Number(second));
    else if (event === 'recorded') this.recorded++;
    else if (event === 'failed') this.failed.push(second);
    else if (event === 'done') this.done = true;
  }
}

interface Audit {
  readonly committed: ReadonlySet<number>;
  readonly documents: number;
}

/** Compares everything that a process wrote with its output. */
async function audit(catalog: SqliteCatalog, process: CommitProcess): Promise<Audit> {
  const state = await catalog.loadIndexState(process.indexId);
  const { versionIds, died, born } = state.versions;
  const resolved = await catalog.resolveVersions(process.indexId, [...versionIds]);
  const bornIn = new Map<number, Set<string>>();
  const live = new Set<string>();
  for (const [row, versionId] of versionIds.entries()) {
    const version = resolved.get(versionId);
    if (version === undefined) throw new Error('a version without a document');
    const { number } = JSON.parse(version.metadata) as { number: number };
    const generation = born[row] ?? 0;
    expect(generation).toBeLessThanOrEqual(state.generation);
    bornIn.set(number, (bornIn.get(number) ?? new Set()).add(version.docId));
    if (died[row] === 0) live.add(version.docId);
    if (process.acknowledged.has(number)) expect(process.acknowledged.get(number)).toBe(generation);
  }
  for (const [number, docIds] of bornIn) {
    expect([...docIds].toSorted()).toEqual([`${number} a`, `${number} b`, 'shared']);
    expect(process.started).toContain(number);
  }
  for (const number of process.acknowledged.keys()) expect([...bornIn.keys()]).toContain(number);
  expect(state.generation).toBe(bornIn.size);
  expect(live.size).toBe(bornIn.size === 0 ? 0 : bornIn.size * 2 + 1);
  return { committed: new Set(bornIn.keys()), documents: live.size };
}

function expectSound(directory: string): void {
  for (const file of ['catalog.db', 'usage.db']) {
    const database = new Database(path.join(directory, file), { readonly: true });
    expect(database.pragma('integrity_check', { simple: true }), file).toBe('ok');
    database.close();
  }
}

describe('a process killed while it commits', () => {
  it('leaves every acknowledged commit whole, and charges at most the commits that were under way', async () => {
    const { directory, tenantId } = await newCatalog();
    let committed = 0;
    let acknowledged = 0;
    let started = 0;
    let recorded = 0;
    let documents = 0;
    for (const killAt of [1, 7, 40, 150, 400]) {
      const child = new CommitProcess([directory, tenantId, '1000000'], {
        onLine: (process) => {
          if (process.acknowledged.size >= killAt) process.kill();
        },
      });
      await child.ended();
      expect(child.acknowledged.size).toBeGreaterThanOrEqual(killAt);
      const catalog = await openCatalog({ directory });
      const result = await audit(catalog, child);
      committed += result.committed.size;
      documents += result.documents;
      acknowledged += child.acknowledged.size;
      started += child.started.size;
      recorded += child.recorded;
      const usage = await catalog.usageTotals(tenantId, month);
      const searches = BigInt(usage.searches);
      expect(usage.inputTokens).toBe(BigInt(committed) * 10n + searches);
      expect(usage.documentUpserts).toBe(committed * 3);
      expect(usage.documents).toBe(documents);
      expect(committed).toBeGreaterThanOrEqual(acknowledged);
      expect(committed).toBeLessThanOrEqual(started);
      expect(usage.searches).toBeGreaterThanOrEqual(recorded);
      expect(usage.searches).toBeLessThanOrEqual(acknowledged);
      await catalog.close();
    }
    expectSound(directory);
  });
});

describe('several processes with one catalog', () => {
  it('commit at the same time without losing or mixing anything', async () => {
    const { directory, tenantId } = await newCatalog();
    const children = ['one', 'two', 'three'].map(() => new CommitProcess([directory, tenantId, '60']));
    const catalog = await openCatalog({ directory });
    const beside = [];
    for (let count = 0; count < 20; count++) beside.push(await newTenant(catalog));
    await Promise.all(children.map((child) => child.ended()));
    expect(await catalog.listTenants()).toHaveLength(beside.length + 1);
    for (const child of children) {
      expect(child.done).toBe(true);
      expect((await audit(catalog, child)).committed.size).toBe(60);
    }
    expect(await catalog.usageTotals(tenantId, month)).toEqual({
      inputTokens: 3n * 60n * 11n,
      requests: 360,
      documentUpserts: 540,
      searches: 180,
      scores: 0,
      documents: 363,
    });
    await catalog.close();
    expectSound(directory);
  });
});

describe('a process whose files may not grow', () => {
  it('answers service_unavailable, and keeps exactly the acknowledged commits', async () => {
    const { directory, tenantId } = await newCatalog();
    const child = new CommitProcess([directory, tenantId, '400', '8000'], { fileKibMax: 4000 });
    await child.ended();
    expect(child.done).toBe(true);
    expect(child.acknowledged.size).toBeGreaterThan(0);
    expect(new Set(child.failed)).toEqual(new Set(['service_unavailable']));
    const catalog = await openCatalog({ directory });
    const { committed } = await audit(catalog, child);
    expect(committed).toEqual(new Set(child.acknowledged.keys()));
    const usage = await catalog.usageTotals(tenantId, month);
    expect(usage.documentUpserts).toBe(committed.size * 3);
    await newTenant(catalog);
    await catalog.close();
    expectSound(directory);
  });
});
