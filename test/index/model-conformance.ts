/**
 * Random upserts, replacements, updates of metadata, deletes, abandoned upserts, torn tails, restarts, merges and merges that are
 * cut off at any of their steps against a map in memory: after every step a search finds exactly what the map
 * holds, and after upkeep no more segments are sealed than allowed.
 */
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { engineError } from '../support/stages/faults.ts';
import {
  dim,
  exactSearch,
  expected,
  tend,
  type Found,
  type TestDocument,
} from '../support/stages/index-stage.ts';
import { hangMs } from '../support/running/eventually.ts';
import { metadataTerms } from '../../src/index/terms/metadata-terms.ts';
import type { IndexKind, IndexUnderTest } from './conformance.ts';

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

class Step implements fc.AsyncCommand<Model, IndexUnderTest> {
  readonly #name: string;
  readonly #work: (model: Model, stage: IndexUnderTest) => Promise<void>;

  constructor(name: string, work: (model: Model, stage: IndexUnderTest) => Promise<void>) {
    this.#name = name;
    this.#work = work;
  }

  check(): boolean {
    return true;
  }

  async run(model: Model, stage: IndexUnderTest): Promise<void> {
    await this.#work(model, stage);
    await compare(model, stage);
  }

  toString(): string {
    return this.#name;
  }
}

async function compare(model: Model, stage: IndexUnderTest): Promise<void> {
  expectSame(await stage.search(), expected(model.values()));
  const red = [...model.values()].filter(
    ({ metadata }) => metadata['color'] === 'red' && metadata['size'] === 0,
  );
  expectSame(await stage.search({ size: -0, color: 'red' }), expected(red));
  const none = [...model.values()].filter(({ metadata }) => metadata['size'] === null);
  expectSame(await stage.search({ size: null }), expected(none));
  await compareSpan([...model.values()], stage);
}

/** Counts the red documents, and searches with a bonus for each of them. */
async function compareSpan(documents: readonly TestDocument[], stage: IndexUnderTest): Promise<void> {
  const isRed = ({ metadata }: TestDocument) => metadata['color'] === 'red';
  const red = documents.filter(isRed);
  const span = { terms: metadataTerms('{"color":"red"}'), termCounts: Uint32Array.of(1) };
  const bonus = 100_000;
  await stage.index().read(async (reader) => {
    const counts = await reader.countSpans({ ...span, timeoutMs: hangMs });
    const chunks = red.flatMap((document) => document.chunks);
    expect(counts).toEqual({
      documents: documents.length,
      spanDocuments: Float64Array.of(red.length),
      chunks: Float64Array.of(chunks.length),
      tokenVectors: Float64Array.of(chunks.flat().length),
    });
    const search = { ...exactSearch({}), match: { ...span, bonuses: Float32Array.of(bonus) } };
    const { versionIds, scores, maxsims, matched } = await reader.search(search);
    // One chunk of each red document has the bonus, and they come first.
    const isRaised = Array.from(scores, (_, place) => place < red.length);
    expect([...scores]).toEqual(
      isRaised.map((raised, place) => Math.fround(maxsims![place]! + (raised ? bonus : 0))),
    );
    expect([...matched!]).toEqual(isRaised.flatMap((raised) => [raised ? 1 : 0, 0]));
    expect(new Set(versionIds.slice(0, red.length)).size).toBe(red.length);
    expect(versionIds).toHaveLength(documents.flatMap((document) => document.chunks).length);
  });
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

function expectWithinBound(stage: IndexUnderTest): void {
  const { segments } = stage.index().statistics();
  const sealed = segments.filter(({ state }) => state === 'sealed');
  expect(sealed.length).toBeLessThanOrEqual(sealedSegmentsMax);
}

function expectSameAnswer(found: boolean, existed: boolean): void {
  expect(found).toBe(existed);
}

const requests = [
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
        const commits = await Promise.all(
          [first, second].map(async (documents) => ({
            documents,
            generation: await stage.upsert(documents),
          })),
        );
        for (const { documents } of commits.toSorted((a, b) => a.generation - b.generation)) {
          for (const document of documents) model.set(document.docId, document);
        }
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
  fc
    .uint8Array({ minLength: 1, maxLength: 200 })
    .map(
      (garbage) =>
        new Step('crash in the middle of a write', async (_model, stage) =>
          stage.reopen(() => stage.tear(garbage)),
        ),
    ),
  fc.constant(
    new Step('upkeep', async (_model, stage) => {
      await tend(stage.index());
      expectWithinBound(stage);
    }),
  ),
];

const crashes = (kind: IndexKind) =>
  fc.tuple(fc.constantFrom(...kind.steps.merge), fc.nat({ max: 2 })).map(
    ([step, calls]) =>
      new Step(`crash at call ${calls} of ${step} during upkeep`, async (_model, stage) => {
        stage.faults.set(step, engineError('io', calls));
        await stage.index().maintain();
        stage.faults.clear();
        await stage.reopen();
        stage.errors.length = 0;
      }),
  );

export function describeModel(kind: IndexKind): void {
  it('always finds exactly what was acknowledged', async () => {
    await fc.assert(
      fc.asyncProperty(fc.commands([...requests, crashes(kind)], { maxCommands: 25 }), async (commands) => {
        await using stage = await kind.open({
          segmentTokenVectorsMax: 6,
          sealedSegmentsMax,
          wasteAgeMsMax: 0,
        });
        await fc.asyncModelRun(() => ({ model: new Map<string, TestDocument>(), real: stage }), commands);
        expect(stage.errors).toEqual([]);
        expect(stage.corrupt).toEqual([]);
        await tend(stage.index());
        const { segments, recordsLive } = stage.index().statistics();
        expect(segments.reduce((records, segment) => records + segment.records, 0)).toBe(recordsLive);
      }),
      { numRuns: kind.modelRuns },
    );
  });
}
