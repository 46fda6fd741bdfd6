/** Derives from the notes of the load which documents must be found after a power cut or a failure. */
import assert from 'node:assert/strict';
import { verifyIndexes } from '../../../src/cli/index/index-verify.ts';
import { parseConfig } from '../../../src/app/config.ts';
import {
  expected,
  month,
  openHost,
  openStage,
  type Found,
  type Host,
  type Stage,
} from '../../support/stages/index-stage.ts';
import {
  documentOf,
  loadSettings,
  recordSearch,
  searchTokens,
  tokenVectorsOf,
  type Note,
  type Operation,
  type StageIds,
  type Version,
} from './load.ts';

/** The documents by their uids, and the ledger. */
export interface Contents {
  readonly documents: ReadonlyMap<string, number>;
  readonly upserts: number;
  readonly upsertTokens: bigint;
  /** Upserts and deletes. */
  readonly writes: number;
  readonly searches: number;
}

/** Without work in the background, which takes time. */
const resting = {
  ...loadSettings,
  sealedSegmentsMax: 1_000,
  codesTokenVectorsMin: Infinity,
  wasteAgeMsMax: Infinity,
};

const nothing: Contents = { documents: new Map(), upserts: 0, upsertTokens: 0n, writes: 0, searches: 0 };

export class Expectation {
  #ids: StageIds | undefined;
  readonly #documents: Map<string, number>;
  #upserts: number;
  #upsertTokens: bigint;
  #writes: number;
  #searches: number;
  #searchesSynced: number;
  readonly #inFlight = new Map<number, Operation>();
  readonly #guests = new Map<string, Extract<Note, { readonly what: 'guest' }>>();

  /** Begins with what was found, all of it durable. */
  constructor(ids?: StageIds, found: Contents = nothing) {
    this.#ids = ids;
    this.#documents = new Map(found.documents);
    this.#upserts = found.upserts;
    this.#upsertTokens = found.upsertTokens;
    this.#writes = found.writes;
    this.#searches = found.searches;
    this.#searchesSynced = found.searches;
  }

  /** Goes on from here by itself. */
  copy(): Expectation {
    const copy = new Expectation(this.#ids, {
      documents: this.#documents,
      upserts: this.#upserts,
      upsertTokens: this.#upsertTokens,
      writes: this.#writes,
      searches: this.#searches,
    });
    copy.#searchesSynced = this.#searchesSynced;
    for (const operation of this.#inFlight.values()) copy.take({ what: 'begun', operation });
    for (const guest of this.#guests.values()) copy.take(guest);
    return copy;
  }

  get ids(): StageIds | undefined {
    return this.#ids;
  }

  get inFlight(): readonly number[] {
    return [...this.#inFlight.keys()];
  }

  get searches(): number {
    return this.#searches;
  }

  /** So many searches are in the ledger whatever happens. */
  searchesAreSynced(searches: number): void {
    this.#searchesSynced = Math.max(this.#searchesSynced, searches);
  }

  take(note: Note): void {
    switch (note.what) {
      case 'opened':
        this.#ids = note.ids;
        return;
      case 'begun':
        this.#inFlight.set(note.operation.number, note.operation);
        return;
      case 'acknowledged': {
        const operation = this.#inFlight.get(note.number);
        this.#inFlight.delete(note.number);
        if (operation !== undefined && note.changed) this.#settle(operation);
        return;
      }
      case 'refused':
        for (const number of note.numbers) this.#inFlight.delete(number);
        return;
      case 'guest':
        this.#guests.set(note.ids.indexId, note);
    }
  }

  #settle(operation: Operation): void {
    if (operation.kind === 'search') {
      this.#searches += 1;
      return;
    }
    this.#writes += 1;
    for (const version of operation.versions) {
      if (operation.kind === 'delete') {
        this.#documents.delete(version.docId);
        continue;
      }
      this.#documents.set(version.docId, version.uid);
      this.#upserts += 1;
      this.#upsertTokens += BigInt(tokenVectorsOf(version));
    }
  }

  /** Opens the directory as the service does and compares; `going`: writes to it as well. Returns what is there. */
  async check(directory: string, going: boolean): Promise<Contents> {
    await using host = await openHost(directory);
    await this.#checkGuests(host);
    if (this.#ids === undefined) {
      if (going) await (await openStage(host, loadSettings))[Symbol.asyncDispose]();
      return nothing;
    }
    const contents = await this.#checkIndex(host, this.#ids, going);
    await expectVerified(directory, this.#ids.indexId);
    return contents;
  }

  /** Compares an open index; what is found of operations in flight has happened, or has not. */
  async checkStage(stage: Stage): Promise<Contents> {
    const documents = await this.#checkDocuments(stage);
    return await this.#checkLedger(stage, documents);
  }

  async #checkIndex(host: Host, ids: StageIds, going: boolean): Promise<Contents> {
    await using stage = await openStage(host, going ? loadSettings : resting, ids);
    const contents = await this.checkStage(stage);
    if (going) await goOn(stage, contents.documents);
    await stage.index().settled();
    assert.deepEqual([stage.corrupt, stage.errors], [[], []]);
    return contents;
  }

  async #checkDocuments(stage: Stage): Promise<ReadonlyMap<string, number>> {
    const found = Map.groupBy(await stage.search(), ({ docId }) => docId);
    const documents = new Map<string, number>();
    for (const [docId, chunks] of found) documents.set(docId, wholeVersion(docId, chunks));
    const touched = new Map<string, Operation>();
    for (const operation of this.#inFlight.values()) {
      for (const { docId } of operation.versions) touched.set(docId, operation);
    }
    for (const docId of new Set([...documents.keys(), ...this.#documents.keys()])) {
      if (!touched.has(docId)) assert.equal(documents.get(docId), this.#documents.get(docId), docId);
    }
    for (const operation of this.#inFlight.values()) {
      if (operation.kind !== 'search' && this.#isCommitted(operation, documents)) {
        this.#inFlight.delete(operation.number);
        this.#settle(operation);
      }
    }
    await checkColumns(stage, documents);
    return documents;
  }

  /** Whole or not at all. A delete of what was not there is not distinguished from one that did not happen. */
  #isCommitted({ kind, versions }: Operation, documents: ReadonlyMap<string, number>): boolean {
    const others = new Set(
      [...this.#inFlight.values()].flatMap((operation) => operation.versions.map((other) => other.uid)),
    );
    const verdicts = versions.flatMap(({ docId, uid }) => {
      const [before, now] = [this.#documents.get(docId), documents.get(docId)];
      // A later one has replaced it, whether it was there or not.
      if (now !== undefined && now !== uid && others.has(now)) return [];
      if (now === (kind === 'upsert' ? uid : undefined)) return now !== before;
      assert.equal(now, before, `${docId} after an unanswered ${kind}`);
      return false;
    });
    assert.ok(new Set(verdicts).size <= 1, 'an upsert is one transaction');
    return verdicts[0] ?? false;
  }

  async #checkLedger(
    { catalog, tenantId }: Stage,
    documents: ReadonlyMap<string, number>,
  ): Promise<Contents> {
    const usage = await catalog.usageTotals(tenantId, month);
    const inFlight = [...this.#inFlight.values()];
    const searchesInFlight = inFlight.filter(({ kind }) => kind === 'search').length;
    assert.equal(usage.documents, documents.size, 'documents');
    assert.equal(usage.documentUpserts, this.#upserts, 'upserts');
    assert.equal(usage.inputTokens, this.#upsertTokens + searchTokens * BigInt(usage.searches), 'tokens');
    const searchesMax = this.#searches + searchesInFlight;
    assert.ok(
      usage.searches >= this.#searchesSynced && usage.searches <= searchesMax,
      `searches: ${this.#searchesSynced} <= ${usage.searches} <= ${searchesMax}`,
    );
    assert.equal(usage.requests - usage.searches, this.#writes, 'requests');
    return {
      documents,
      upserts: this.#upserts,
      upsertTokens: this.#upsertTokens,
      writes: this.#writes,
      searches: usage.searches,
    };
  }

  async #checkGuests({ catalog }: Host): Promise<void> {
    for (const { ids, state } of this.#guests.values()) {
      const index = await catalog.getIndex(ids.tenantId, ids.indexId);
      if (state === 'there') assert.notEqual(index, undefined);
      if (state === 'gone') assert.equal(index, undefined);
    }
  }
}

/** A condition reads columns, which may have been cut short, and writes them again. */
async function checkColumns(stage: Stage, documents: ReadonlyMap<string, number>): Promise<void> {
  const uids = [...documents.values()].toSorted((a, b) => a - b);
  const median = uids[uids.length >> 1] ?? 0;
  const wanted = [...documents].flatMap(([docId, uid]) => (uid >= median ? [docId] : []));
  assert.deepEqual(await stage.matching(`{"uid":{"gte":${median}}}`), wanted.toSorted());
  await stage.index().settled();
}

function wholeVersion(docId: string, chunks: readonly Found[]): number {
  const { uid } = JSON.parse(chunks[0]?.metadata ?? '{}') as { readonly uid: number };
  const wanted = expected([documentOf({ docId, uid })]);
  const sorted = chunks.toSorted((a, b) => a.chunkIndex - b.chunkIndex);
  assert.deepEqual(
    sorted.map(({ score: _score, ...chunk }) => chunk),
    wanted.map(({ score: _score, ...chunk }) => chunk),
  );
  // The engine quantises the query to int8.
  for (const [place, { score }] of sorted.entries()) {
    assert.ok(Math.abs(score - (wanted[place]?.score ?? NaN)) < 0.2);
  }
  return uid;
}

async function goOn(stage: Stage, documents: ReadonlyMap<string, number>): Promise<void> {
  const version: Version = { docId: 'afterwards', uid: 1 };
  await stage.upsert([documentOf(version)]);
  for (const docId of documents.keys()) assert.equal(await stage.remove(docId), true);
  await recordSearch(stage);
  await stage.index().maintain();
  await stage.index().settled();
  const found = new Set((await stage.search()).map(({ docId }) => docId));
  assert.deepEqual([...found], [version.docId]);
}

/** `index verify`, but for guests: what a cut left of them goes when they are opened. */
async function expectVerified(directory: string, indexId: string): Promise<void> {
  const { document } = await verifyIndexes(parseConfig({ MAXSIMD_DATA_DIR: directory }), {});
  const { problems } = document as { readonly problems: readonly { readonly index_id: string }[] };
  assert.deepEqual(
    problems.filter(({ index_id: found }) => found === '' || found === indexId),
    [],
  );
}
