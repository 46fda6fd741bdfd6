/**
 * `kill -9` of the api process in the middle of imports, again and again. After each restart: no
 * acknowledged document missing, no deleted or expired one back, no half document, and a ledger that holds what was
 * acknowledged and no more than what was in flight besides. Segments are small, so that merges go on all the
 * time and are struck as well. The encoder is a process of its own, which stays: a round does not wait for its start.
 */
import { existsSync, watch } from 'node:fs';
import { readdir, rm, stat, truncate } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';

import { openCatalogReader } from '../../src/catalog/sqlite/reads/catalog-reader.ts';
import { rounds } from '../rounds.ts';
import { spawnEncoders, type SpawnedEncoders } from '../support/encoder/encoders.ts';
import { defaultModel } from '../support/encoder/models.ts';
import { connect, expectReply, type Client } from '../support/running/client.ts';
import { createTenant, runCommand } from '../support/commands/command-line.ts';
import { eventually } from '../support/running/eventually.ts';
import { ExpiringLoad } from '../support/stages/expiring-load.ts';
import { LoadModel, type KnownText, type Operation } from '../support/running/load.ts';
import { announceRandom, type Random } from '../support/running/random.ts';
import { makeScratch, type Scratch } from '../support/running/launch.ts';
import { startServer, type ServerProcess } from '../support/running/server.ts';
import { find, makeIndex, put, readUsage } from '../support/running/requests.ts';
import { recombine, textOfTokens } from '../support/running/texts.ts';
import { ranked, type ResultItem } from '../support/running/wire.ts';

const kills = rounds({ short: 10, nightly: 2_000 });
/** A run goes on beyond `kills` until this many struck a seal or a merge. */
const upkeepKills = 2;
const writers = 4;
const documentsPerWriter = 10;
const sealedSegmentsMax = 8;
/** And until it has seen so many segments. */
const segmentsMin = 2 * sealedSegmentsMax + 1;
const query = { text: textOfTokens(3), tokens: 3n };

describe('kill -9 of the api process', () => {
  const random = announceRandom('kill -9 of the api process');
  const model = new LoadModel();
  const docIds = Array.from({ length: writers }, (_, writer) =>
    Array.from({ length: documentsPerWriter }, (__, position) => `w${writer}-${position}`),
  ).flat();
  let scratch: Scratch;
  let encoders: SpawnedEncoders;
  /** A segment holds a few documents. */
  const constants = { segmentTokenVectorsMax: 96 };
  let env: Readonly<Record<string, string>>;
  let server: ServerProcess;
  let client: Client;
  /** Writes whose answer never came: the crash struck after, or before, their commit. */
  const struck = { committed: 0, notCommitted: 0 };
  /** Kills that left more than one segment unsealed, or a file that the catalog does not name: of a seal or a merge. */
  let struckUpkeep = 0;
  let key = '';
  let indexId = '';
  /** It has a tenant of its own, because expired documents would blur an exact ledger. */
  let expiring: ExpiringLoad;
  let expiringKey = '';
  const expiringClient = (): Client => connect(server.url, expiringKey);
  let texts: readonly KnownText[] = [];
  /** 1 when a usage summary counts the request that asks for it. */
  let summaryCountsItself = 0;

  beforeAll(async () => {
    scratch = await makeScratch();
    encoders = await spawnEncoders({ modelDirectories: [defaultModel] });
    await encoders.supervisor.ready;
    env = {
      MAXSIMD_ENCODERS: encoders.supervisor.addresses.join(','),
    };
    server = await startServer({ scratch, env, constants });
    ({ key, client } = await createTenant(server));
    summaryCountsItself = (await readUsage(client)).usage.requests;
    const chunking = { max_tokens: 24, overlap_tokens: 4, minimum_chunk_tokens: 4 };
    ({ id: indexId } = await makeIndex(client, { chunking }));
    texts = await measureTexts(client, random, (await makeIndex(client, { chunking })).id);
    await adoptLedger();
    const owner = await createTenant(server);
    expiringKey = owner.key;
    expiring = new ExpiringLoad((await makeIndex(owner.client)).id);
  });

  afterAll(async () => {
    await server?.stop();
    await encoders?.supervisor.close();
    await scratch.remove();
  });

  /** Takes the ledger as it stands, so that what follows is judged on its own. */
  async function adoptLedger(): Promise<void> {
    const { usage } = await readUsage(client);
    model.ledger.inputTokens = BigInt(usage.input_tokens);
    model.ledger.requests = usage.requests + (1 - summaryCountsItself);
    model.ledger.documentUpserts = usage.document_upserts;
    model.ledger.searches = usage.searches;
  }

  /** Imports until the server is killed: just after some acknowledgement, or after the file of a segment appears, as in seals and merges. */
  async function importUntilKilled({ inUpkeep }: { readonly inUpkeep: boolean }): Promise<void> {
    const delayMs = random.integer(0, 3);
    // The delay moves the kill within the next operations; it waits for nothing.
    const strike = (): void => void setTimeout(() => server.signal('SIGKILL'), delayMs);
    const known = new Set(await segmentFiles());
    const watcher = inUpkeep
      ? watch(segmentDirectory(), (_event, name) => {
          if (name?.endsWith('.seg') === true && !known.has(name)) strike();
        })
      : undefined;
    let untilKill = random.integer(1, 40);
    const onAcknowledged = (): void => {
      untilKill -= 1;
      if (untilKill === 0 && !inUpkeep) strike();
    };
    const options = { client, indexId, random, texts, onAcknowledged };
    const importers = Array.from({ length: writers }, (_, writer) =>
      model.write(`w${writer}`, documentsPerWriter, options),
    );
    const searching = model.search(query, options);
    await Promise.all([...importers, searching, expiring.write(expiringClient(), random)]);
    watcher?.close();
    await server.kill();
  }

  /** The chunks of one document, and the version they belong to: whole and of one version, or none. */
  async function observe(docId: string): Promise<string | undefined> {
    const { results } = await find(client, indexId, {
      query: query.text,
      top_k: 100,
      filter: { doc: docId },
    });
    model.ledger.requests += 1;
    model.ledger.searches += 1;
    model.ledger.inputTokens += query.tokens;
    return results.length === 0 ? undefined : wholeVersion(docId, results);
  }

  function wholeVersion(docId: string, results: readonly ResultItem[]): string {
    const uids = [...new Set(results.map((result) => String(result.metadata['uid'])))];
    expect(uids, `versions of ${docId}`).toHaveLength(1);
    const [uid = ''] = uids;
    const candidates = [
      model.documents.get(docId),
      ...model.unanswered.map(({ changes }) => changes.get(docId)),
    ];
    const version = candidates.find((candidate) => candidate?.uid === uid);
    expect(version, `${docId} has ${uid}, which was neither acknowledged last nor in flight`).toBeDefined();
    const chunks = results.map((result) => result.chunk_index).toSorted((left, right) => left - right);
    expect(chunks, `chunks of ${docId}`).toEqual(
      Array.from({ length: version?.known.chunks ?? 0 }, (_, chunk) => chunk),
    );
    expect(new Set(results.map((result) => result.chunk_id)).size).toBe(results.length);
    return uid;
  }

  /** An unanswered write was committed whole or not at all. */
  function wasCommitted(operation: Operation, observed: ReadonlyMap<string, string | undefined>): boolean {
    const verdicts = [...operation.changes].map(([docId, version]) => {
      const before = model.documents.get(docId)?.uid;
      const now = observed.get(docId);
      if (now === version?.uid) return now === before ? undefined : true;
      expect(now, `${docId} after an unanswered ${operation.kind}`).toBe(before);
      return false;
    });
    const decided = new Set(verdicts.filter((verdict) => verdict !== undefined));
    expect(decided.size, 'an upsert is one transaction').toBeLessThanOrEqual(1);
    return decided.has(true);
  }

  async function expectRecovered(): Promise<void> {
    const { usage } = await readUsage(client);
    const observed = new Map<string, string | undefined>();
    const expected = { ...model.ledger };
    await Promise.all(docIds.map(async (docId) => observed.set(docId, await observe(docId))));
    const spentOnLooking = {
      requests: model.ledger.requests - expected.requests,
      searches: model.ledger.searches - expected.searches,
      inputTokens: model.ledger.inputTokens - expected.inputTokens,
    };
    Object.assign(model.ledger, expected);
    const touched = new Set(model.unanswered.flatMap(({ changes }) => [...changes.keys()]));
    for (const docId of docIds) {
      if (!touched.has(docId)) expect(observed.get(docId), docId).toBe(model.documents.get(docId)?.uid);
    }
    const writes = model.unanswered.filter(({ kind }) => kind !== 'search');
    const searches = model.unanswered.length - writes.length;
    const committed = writes.filter((operation) => wasCommitted(operation, observed));
    for (const operation of committed) model.settle(operation);
    struck.committed += committed.length;
    struck.notCommitted += writes.length - committed.length;
    // A deletion of an absent document leaves no trace but its request.
    const undecided = writes.length - committed.length;

    expect(usage.documents).toBe(
      [...observed.values()].filter((uid) => uid !== undefined).length + texts.length,
    );
    expect(usage.document_upserts).toBe(model.ledger.documentUpserts);
    between(
      BigInt(usage.input_tokens),
      model.ledger.inputTokens,
      query.tokens * BigInt(searches),
      'input tokens',
    );
    between(BigInt(usage.searches), BigInt(model.ledger.searches), BigInt(searches), 'searches');
    const requestsNow = BigInt(usage.requests - summaryCountsItself);
    between(requestsNow, BigInt(model.ledger.requests), BigInt(searches + undecided), 'requests');

    model.unanswered = [];
    model.ledger.inputTokens = BigInt(usage.input_tokens) + spentOnLooking.inputTokens;
    model.ledger.requests = usage.requests + (1 - summaryCountsItself) + spentOnLooking.requests;
    model.ledger.searches = usage.searches + spentOnLooking.searches;
  }

  /** Segments that were there right after a kill, by file name. */
  const segmentsSeen = new Set<string>();

  const segmentDirectory = () => path.join(scratch.data, 'segments', indexId);

  async function segmentFiles(ending = '.seg'): Promise<readonly string[]> {
    const names = existsSync(segmentDirectory()) ? await readdir(segmentDirectory()) : [];
    return names.filter((name) => name.endsWith(ending));
  }

  async function wasInUpkeep(): Promise<boolean> {
    const catalog = openCatalogReader(scratch.data);
    try {
      const { segments } = await catalog.loadIndexState(indexId);
      const named = new Set(segments.map(({ blob }) => path.basename(blob)));
      const unsealed = segments.filter(({ state }) => state === 'active').length;
      return unsealed > 1 || (await segmentFiles()).some((name) => !named.has(name));
    } finally {
      catalog.close();
    }
  }

  /** Derived files may go, or be cut short, at any time. */
  async function damagePostings(): Promise<void> {
    for (const name of await segmentFiles('.postings')) {
      const file = path.join(segmentDirectory(), name);
      const { size } = await stat(file);
      const kept = random.integer(0, 2 * size);
      if (kept < size) await truncate(file, kept);
      else if (kept % 2 === 0) await rm(file);
    }
  }

  test(
    'everything acknowledged is there, nothing deleted is back, nothing is half, the ledger holds',
    { timeout: rounds({ short: 600_000, nightly: 4 * 3_600_000 }) },
    async ({ onTestFailed }) => {
      onTestFailed(() => console.log(`the server's last words:\n${server.output().stderr.slice(-4000)}`));
      for (
        let round = 1;
        round <= kills || struckUpkeep < upkeepKills || segmentsSeen.size < segmentsMin;
        round += 1
      ) {
        // The first kill may strike before the index has been written to: then it has no directory yet.
        await importUntilKilled({ inUpkeep: round % 2 === 0 && existsSync(segmentDirectory()) });
        for (const name of await segmentFiles()) segmentsSeen.add(name);
        if (await wasInUpkeep()) struckUpkeep += 1;
        if (round % 3 === 0) await damagePostings();
        server = await startServer({ scratch, env, constants });
        client = connect(server.url, key);
        await expectRecovered();
        await expiring.check(expiringClient());
      }
    },
  );

  test('documents that expire survived with their times, and have ended by then', async () => {
    const { left, stored } = await expiring.untilEnded(expiringClient());
    expect(stored).toBe(left);
    expect(left).toBeGreaterThan(0);
    expect(expiring.ended.size).toBeGreaterThan(0);
  });

  test('the crashes struck on both sides of commits', () => {
    console.log(
      `writes in flight at ${kills} kills: ${JSON.stringify(struck)}; in seals and merges: ${struckUpkeep}`,
    );
    expect(struck.committed + struck.notCommitted).toBeGreaterThan(kills);
    expect(struck.notCommitted).toBeGreaterThan(0);
  });

  test('the background work catches up: few segments, every file intact, none left over', async () => {
    const caughtUp = async () => {
      const { stdout } = await runCommand(['index', 'inspect', indexId, '--json'], {
        MAXSIMD_DATA_DIR: scratch.data,
      });
      const [found] = inspection.parse(JSON.parse(stdout)).data;
      if (found === undefined || found.segments_sealed > sealedSegmentsMax) return undefined;
      const isComplete = ({ state, derived }: (typeof found.segments)[number]): boolean =>
        state === 'active' || derived.some(({ name }) => name === 'postings');
      return found.segments.every(isComplete) ? found : undefined;
    };
    const index = await eventually(caughtUp);
    const files = await segmentFiles();
    console.log(`segments seen at kills: ${segmentsSeen.size}, now ${files.length}`);
    expect(files.filter((name) => segmentsSeen.has(name)).length).toBeLessThan(segmentsSeen.size);
    expect(index.segments.every(({ problem }) => problem === null)).toBe(true);
    await server.kill();
    server = await startServer({ scratch, env, constants });
    client = connect(server.url, key);
    // Opening it removes what the kill left.
    await find(client, indexId, { query: query.text });
    const verified = await runCommand(['index', 'verify', '--json'], { MAXSIMD_DATA_DIR: scratch.data });
    expect(JSON.parse(verified.stdout)).toMatchObject({ problems: [], unreferenced_files: [] });
    expect(verified.exitCode).toBe(0);
    await adoptLedger();
  });

  test('a graceful restart after all crashes changes nothing', async () => {
    const before = expectReply(await client.search(indexId, { query: query.text, top_k: 100 }), ranked);
    await adoptLedger();
    expect((await server.stop()).code).toBe(0);
    server = await startServer({ scratch, env, constants });
    client = connect(server.url, key);
    await expectRecovered();
    expect((await find(client, indexId, { query: query.text, top_k: 100 })).results).toEqual(before.results);
  });
});

/** Stores each text alone in an index of its own to learn its chunks and tokens. */
async function measureTexts(client: Client, random: Random, indexId: string): Promise<readonly KnownText[]> {
  const known: KnownText[] = [];
  for (const words of [3, 10, 20, 30, 45, 60, 90, 150]) {
    const text = recombine(random, words);
    const stored = await put(client, indexId, [{ doc_id: `of ${words}`, text }]);
    known.push({ text, chunks: stored.upserted_chunks, tokens: stored.usage.input_tokens });
  }
  return known;
}

const inspection = z.object({
  data: z.array(
    z.object({
      segments_sealed: z.number(),
      segments: z.array(
        z.object({
          state: z.string(),
          problem: z.string().nullable(),
          derived: z.array(z.object({ name: z.string() })),
        }),
      ),
    }),
  ),
});

function between(actual: bigint, acknowledged: bigint, inFlight: bigint, what: string): void {
  const fine = actual >= acknowledged && actual <= acknowledged + inFlight;
  expect(
    fine,
    `${what}: acknowledged ${acknowledged} <= ledger ${actual} <= ${acknowledged} + ${inFlight}`,
  ).toBe(true);
}
