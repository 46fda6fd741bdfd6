/**
 * Backups of a server that is written to, searched and merging all the while. What is restored is one moment: of each
 * writer the documents after one of its operations, none before the last that was answered when the backup began, and
 * no operation without those that had been answered before it was sent. Usage keeps to the same bounds.
 */
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { openCatalogReader } from '../../src/catalog/sqlite/reads/catalog-reader.ts';
import { openCatalog } from '../../src/catalog/sqlite/open-catalog.ts';
import { rounds } from '../rounds.ts';
import { expectReply, type Client } from '../support/running/client.ts';
import { createTenant, runCommand } from '../support/commands/command-line.ts';
import type { TestTenant } from '../support/commands/operators.ts';
import { announceRandom, type Random } from '../support/running/random.ts';
import { startServer, type ServerProcess } from '../support/running/server.ts';
import { makeIndex } from '../support/running/requests.ts';
import { textOfTokens } from '../support/running/texts.ts';
import { deleted, ranked, upserted } from '../support/running/wire.ts';

const backups = rounds({ short: 2, nightly: 300 });
const writersCount = 4;
const documentsPerWriter = 8;

interface Operation {
  /** The version of each document it touches; `undefined` = deleted. */
  readonly changes: ReadonlyMap<string, string | undefined>;
  /** How many operations of each writer had been answered when it was sent. */
  readonly after: readonly number[];
}

class Writer {
  readonly operations: Operation[] = [];
  answered = 0;
  readonly #name: string;
  readonly #client: Client;
  readonly indexId: string;
  readonly #random: Random;

  constructor(name: string, client: Client, indexId: string, random: Random) {
    this.#name = name;
    this.#client = client;
    this.indexId = indexId;
    this.#random = random;
  }

  async run(writers: readonly Writer[], stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      const changes = this.#changes();
      this.operations.push({ changes, after: writers.map(({ answered }) => answered) });
      await this.#send(changes);
      this.answered += 1;
    }
  }

  /** The documents after the first `count` operations. */
  documentsAfter(count: number): ReadonlyMap<string, string> {
    const documents = new Map<string, string>();
    for (const { changes } of this.operations.slice(0, count)) {
      for (const [docId, version] of changes) {
        if (version === undefined) documents.delete(docId);
        else documents.set(docId, version);
      }
    }
    return documents;
  }

  upsertsAmong(count: number): number {
    const versions = this.operations.slice(0, count).flatMap(({ changes }) => [...changes.values()]);
    return versions.filter((version) => version !== undefined).length;
  }

  #changes(): ReadonlyMap<string, string | undefined> {
    const pick = (): string => `${this.#name}-${this.#random.integer(0, documentsPerWriter - 1)}`;
    if (this.#random.next() < 0.2) return new Map([[pick(), undefined]]);
    const version = `${this.operations.length}`;
    return new Map(Array.from({ length: this.#random.integer(1, 4) }, () => [pick(), version]));
  }

  async #send(changes: ReadonlyMap<string, string | undefined>): Promise<void> {
    const documents = [...changes].flatMap(([docId, version]) =>
      version === undefined ? [] : [{ doc_id: docId, text: textOfTokens(20), metadata: { version } }],
    );
    if (documents.length > 0) {
      expectReply(await this.#client.upsert(this.indexId, documents), upserted);
      return;
    }
    const [docId = ''] = changes.keys();
    expectReply(await this.#client.deleteDocument(this.indexId, docId), deleted);
  }
}

const random = announceRandom('backups under load');
const stopped = new AbortController();
const searches = { sent: 0, answered: 0 };
let server: ServerProcess;
let tenant: TestTenant;
let writers: readonly Writer[];
let load: Promise<unknown>;
let failed: unknown;

async function searchOn(indexId: string): Promise<void> {
  while (!stopped.signal.aborted) {
    searches.sent += 1;
    expectReply(await tenant.client.search(indexId, { query: 'one word' }), ranked);
    searches.answered += 1;
  }
}

beforeAll(async () => {
  // A few documents fill a segment: merges go on all the time.
  server = await startServer({ sharedEncoder: true, constants: { segmentTokenVectorsMax: 48 } });
  tenant = await createTenant(server);
  const indexes = [await makeIndex(tenant.client), await makeIndex(tenant.client)];
  writers = Array.from({ length: writersCount }, (_writer, place) => {
    const index = indexes[place % indexes.length]!;
    return new Writer(`w${place}`, tenant.client, index.id, random);
  });
  load = Promise.all([
    ...writers.map((writer) => writer.run(writers, stopped.signal)),
    searchOn(indexes[0]!.id),
  ]).catch((error: unknown) => {
    failed = error;
  });
});
afterAll(async () => {
  stopped.abort();
  await load;
  await server.stop();
  await server.scratch.remove();
});

/** The live documents of each index, as the catalog of a directory has them. */
async function documentsIn(directory: string): Promise<ReadonlyMap<string, ReadonlyMap<string, string>>> {
  const catalog = openCatalogReader(directory);
  try {
    const found = new Map<string, ReadonlyMap<string, string>>();
    for (const indexId of await catalog.listIndexIds()) {
      const { versions } = await catalog.loadIndexState(indexId);
      const live = [...versions.versionIds].filter((_id, place) => versions.died[place] === 0);
      const resolved = [...(await catalog.resolveVersions(indexId, live)).values()];
      const versionOf = (metadata: string) => (JSON.parse(metadata) as { readonly version: string }).version;
      found.set(indexId, new Map(resolved.map(({ docId, metadata }) => [docId, versionOf(metadata)])));
    }
    return found;
  } finally {
    catalog.close();
  }
}

function textOf(documents: readonly (readonly [string, string])[]): string {
  return documents
    .map(([docId, version]) => `${docId}=${version}`)
    .toSorted((one, other) => (one < other ? -1 : 1))
    .join(' ');
}

/** After how many of its operations a writer's documents were as they are found: at least, and at most. */
function operationsIn(
  writer: Writer,
  name: string,
  found: ReadonlyMap<string, string>,
  [answered, sent]: readonly [number, number],
): { readonly least: number; readonly most: number } {
  const own = textOf([...found].filter(([docId]) => docId.startsWith(`${name}-`)));
  const matching: number[] = [];
  for (let count = answered; count <= sent; count += 1) {
    if (textOf([...writer.documentsAfter(count)]) === own) matching.push(count);
  }
  expect(matching, `${name}: ${own} after ${answered} to ${sent} operations`).not.toEqual([]);
  return { least: matching[0]!, most: matching.at(-1)! };
}

for (let round = 1; round <= backups; round += 1) {
  test(`backup ${round} is one moment of the service`, async () => {
    const archive = path.join(server.scratch.root, 'backup.tar');
    const directory = path.join(server.scratch.root, `restored-${round}`);
    const answered = writers.map((writer) => writer.answered);
    const searchesBefore = searches.answered;
    const taken = await runCommand(['backup', archive, '--with-key-pepper', '--json'], {
      MAXSIMD_DATA_DIR: server.scratch.data,
    });
    const sent = writers.map(({ operations }) => operations.length);
    const searchesAfter = searches.sent;
    expect(taken).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/"problems":\[\]/) });
    const restored = await runCommand(['restore', archive, '--json'], { MAXSIMD_DATA_DIR: directory });
    expect(restored).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/"problems":\[\]/) });

    const found = await documentsIn(directory);
    const held = writers.map((writer, place) =>
      operationsIn(writer, `w${place}`, found.get(writer.indexId)!, [answered[place]!, sent[place]!]),
    );
    for (const [place, { least }] of held.entries()) {
      const last = writers[place]!.operations[least - 1];
      for (const [other, before] of (last?.after ?? []).entries()) {
        expect(held[other]!.most, `w${other} beside w${place}`).toBeGreaterThanOrEqual(before);
      }
    }
    const catalog = await openCatalog({ directory });
    try {
      const month = new Date().toISOString().slice(0, 7);
      const usage = await catalog.usageTotals(tenant.id, month);
      expect(usage.searches).toBeGreaterThanOrEqual(searchesBefore);
      expect(usage.searches).toBeLessThanOrEqual(searchesAfter);
      const upserts = (bound: 'least' | 'most'): number =>
        writers.reduce((sum, writer, place) => sum + writer.upsertsAmong(held[place]![bound]), 0);
      expect(usage.documentUpserts).toBeGreaterThanOrEqual(upserts('least'));
      expect(usage.documentUpserts).toBeLessThanOrEqual(upserts('most'));
    } finally {
      await catalog.close();
    }
    expect(failed).toBeUndefined();
    console.log(
      `backup ${round}: ${sent.map((count, place) => count - answered[place]!).join()} operations meanwhile`,
    );
  });
}
