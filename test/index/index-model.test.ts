/**
 * Random upserts, replacements, updates of metadata, deletes, abandoned upserts, torn tails, restarts, merges and merges that are
 * cut off at any of their steps against a map in memory: after every step a search finds exactly what the map
 * holds, and after upkeep no more segments are sealed than allowed.
 */
import { appendFile } from 'node:fs/promises';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  dim,
  engineError,
  expected,
  openHost,
  openStage,
  type Found,
  type Stage,
  type TestDocument,
} from '../support/stages/index-stage.ts';

type Model = Map<string, TestDocument>;

const sealedSegmentsMax = 2;

const docId = fc.constantFrom('a', 'b', 'c', 'd', 'é', '😀');
const row = fc.array(fc.integer({ min: -127, max: 127 }), { minLength: dim, maxLength: dim });
const chunk = fc.array(row, { minLength: 1, maxLength: 3 });
const metadataArbitrary = fc.record({
  color: fc.constantFrom('red', 'blue'),
  size: fc.constantFrom(0, 1, null),
});
const documentArbitrary = fc.record({
  docId,
  metadata: metadataArbitrary,
  chunks: fc.array(chunk, { minLength: 1, maxLength: 3 }),
});
const batch = fc.uniqueArray(documentArbitrary, {
  minLength: 1,
  maxLength: 4,
  selector: (document) => document.docId,
});

class Step implements fc.AsyncCommand<Model, Stage> {
  readonly #name: string;
  readonly #work: (model: Model, stage: Stage) => Promise<void>;

  constructor(name: string, work: (model: Model, stage: Stage) => Promise<void>) {
    this.#name = name;
    this.#work = work;
  }

  check(): boolean {
    return true;
  }

  async run(model: Model, stage: Stage): Promise<void> {
    await this.#work(model, stage);
    await compare(model, stage);
  }

  toString(): string {
    return this.#name;
  }
}

async function compare(model: Model, stage: Stage): Promise<void> {
  expectSame(await stage.search(), expected(model.values()));
  const red = [...model.values()].filter(
    ({ metadata }) => metadata['color'] === 'red' && metadata['size'] === 0,
  );
  expectSame(await stage.search({ size: -0, color: 'red' }), expected(red));
  const none = [...model.values()].filter(({ metadata }) => metadata['size'] === null);
  expectSame(await stage.search({ size: null }), expected(none));
}

function expectSame(found: readonly Found[], wanted: readonly Found[]): void {
  const key = ({ docId: id, chunkIndex }: Found) => `${id} ${chunkIndex}`;
  const sorted = (items: readonly Found[]) => items.toSorted((a, b) => (key(a) < key(b) ? -1 : 1));
  const [have, want] = [sorted(found), sorted(wanted)];
  expect(have.map(({ score: _score, ...rest }) => rest)).toEqual(
    want.map(({ score: _score, ...rest }) => rest),
  );
  // The engine quantises the query to int8.
  for (const [place, { score }] of have.entries())
    expect(Math.abs(score - want[place]!.score)).toBeLessThan(0.2);
}

function expectWithinBound(stage: Stage): void {
  const { segments } = stage.index().statistics();
  const sealed = segments.filter(({ state }) => state === 'sealed');
  expect(sealed.length).toBeLessThanOrEqual(sealedSegmentsMax);
}

function expectSameAnswer(found: boolean, existed: boolean): void {
  expect(found).toBe(existed);
}

const steps = [
  batch.map(
    (documents) =>
      new Step(`upsert ${documents.map((document) => document.docId).join()}`, async (model, stage) => {
        await stage.upsert(documents);
        for (const document of documents) model.set(document.docId, document);
      }),
  ),
  fc.tuple(batch, batch).map(
    ([first, second]) =>
      new Step('two upserts at once', async (model, stage) => {
        const ends: (readonly TestDocument[])[] = [];
        await Promise.all(
          [first, second].map((documents) =>
            stage.upsert(documents, async (work) => {
              await work();
              ends.push(documents);
            }),
          ),
        );
        // Commits become visible in order, so the answers come in order.
        for (const documents of ends) for (const document of documents) model.set(document.docId, document);
      }),
  ),
  docId.map(
    (id) =>
      new Step(`delete ${id}`, async (model, stage) => {
        expectSameAnswer(await stage.remove(id), model.delete(id));
      }),
  ),
  fc.tuple(docId, metadataArbitrary).map(
    ([id, metadata]) =>
      new Step(`update ${id}`, async (model, stage) => {
        const document = model.get(id);
        expectSameAnswer(await stage.update(id, metadata), document !== undefined);
        if (document !== undefined) model.set(id, { ...document, metadata });
      }),
  ),
  fc.tuple(docId, metadataArbitrary).map(
    ([id, metadata]) =>
      new Step(`update ${id} during upkeep`, async (model, stage) => {
        const [, isThere] = await Promise.all([stage.index().maintain(), stage.update(id, metadata)]);
        const document = model.get(id);
        expectSameAnswer(isThere, document !== undefined);
        if (document !== undefined) model.set(id, { ...document, metadata });
      }),
  ),
  batch.map((documents) => new Step('abandoned upsert', async (_model, stage) => stage.abandon(documents))),
  fc.constant(new Step('restart', async (_model, stage) => stage.reopen())),
  fc.uint8Array({ minLength: 1, maxLength: 200 }).map(
    (garbage) =>
      new Step('crash in the middle of a write', async (_model, stage) =>
        stage.reopen(async () => {
          for (const { name } of await stage.blobs.list(`${stage.indexId}/`)) {
            if (name.endsWith('.seg')) await tear(stage, name, garbage);
          }
        }),
      ),
  ),
  fc.constant(
    new Step('upkeep', async (_model, stage) => {
      await stage.index().maintain();
      expectWithinBound(stage);
    }),
  ),
  fc
    .tuple(fc.constantFrom('copyRecords', 'sync', 'seal', 'sealSegment', 'swapSegments'), fc.nat({ max: 2 }))
    .map(
      ([step, calls]) =>
        new Step(`crash at call ${calls} of ${step} during upkeep`, async (_model, stage) => {
          stage.faults.set(step, engineError('io', calls));
          await stage.index().maintain();
          stage.faults.clear();
          await stage.reopen();
          stage.errors.length = 0;
        }),
    ),
];

/** Writes bytes after the last record of an active segment, as a write that was cut off does. */
async function tear(stage: Stage, name: string, garbage: Uint8Array): Promise<void> {
  const state = await stage.catalog.loadIndexState(stage.indexId);
  const segment = state.segments.find(({ blob }) => blob === name);
  if (segment?.state === 'active') await appendFile(await stage.blobs.open(name), garbage);
}

describe('an index', () => {
  it('always finds exactly what was acknowledged', { timeout: 300_000 }, async () => {
    await using host = await openHost();
    await fc.assert(
      fc.asyncProperty(fc.commands(steps, { maxCommands: 25 }), async (commands) => {
        await using stage = await openStage(host, {
          segmentTokenVectorsMax: 6,
          sealedSegmentsMax,
          wasteAgeMsMax: 0,
        });
        await fc.asyncModelRun(() => ({ model: new Map<string, TestDocument>(), real: stage }), commands);
        expect(stage.errors).toEqual([]);
        expect(stage.corrupt).toEqual([]);
        await stage.index().maintain();
        const { segments, recordsLive } = stage.index().statistics();
        expect(segments.reduce((records, segment) => records + segment.records, 0)).toBe(recordsLive);
      }),
      { numRuns: 40 },
    );
  });
});
