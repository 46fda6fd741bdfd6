/**
 * Tests that every kind of open index must pass, whether its segments lie in a directory or nodes share them. `describeIndex`
 * runs all of them on one kind. This file has single cases. Random operations and concurrent work have files of their own.
 */
import { describe, expect, it } from 'vitest';
import type { Catalog } from '../../src/catalog/contract.ts';
import { noRepeats, type Repeats } from '../../src/index/ask-again.ts';
import type { IndexSettings } from '../../src/index/index-settings.ts';
import type { OpenIndex } from '../../src/index/contract.ts';
import { engineError, type Faults } from '../support/stages/faults.ts';
import { docIds, documentAt, mergeUpTo, tend, type IndexDriver } from '../support/stages/index-stage.ts';
import { describeConsistency } from './consistency-conformance.ts';
import { describeModel } from './model-conformance.ts';

/** An index of its own, open in this process. */
export interface IndexUnderTest extends IndexDriver, Faults {
  readonly catalog: Catalog;
  readonly errors: unknown[];
  readonly corrupt: readonly unknown[];
  readonly repeats: Readonly<Repeats>;
  index(): OpenIndex;
  /** Merges all that a merge of this kind may take. */
  mergeAll(): Promise<void>;
  /** Segments that are stored here and that the catalog does not name, and those that are missing here. */
  leftovers(): Promise<readonly string[]>;
  /** Closes the index and opens it again from the catalog; `between` runs while it is closed. */
  reopen(between?: () => Promise<void>): Promise<void>;
  /** Leaves the index, while it is closed, as a write that was cut off leaves it. */
  tear(garbage: Uint8Array): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Stands between an index and its catalog. */
export type WrapCatalog = <C extends Catalog>(real: C) => C;

export interface IndexKind {
  open(settings: Partial<IndexSettings>, wrap?: WrapCatalog): Promise<IndexUnderTest>;
  /** Methods of the catalog and the engine, for `faults` and `hold`. */
  readonly steps: {
    /** Makes the records of an upsert durable. */
    readonly durable: string;
    readonly commit: string;
    /** The last step of a merge in the catalog. */
    readonly swap: string;
    /** All steps of a merge. */
    readonly merge: readonly string[];
    /** Steps that ask the catalog for its state. */
    readonly look: readonly string[];
  };
  /** Whether all searches of one `read` see one generation. */
  readonly pinsSnapshots: boolean;
  /** Runs of the random operations. */
  readonly modelRuns: number;
}

export function describeIndex(name: string, kind: IndexKind): void {
  describe(`index conformance: ${name}`, () => {
    describeVisibility(kind);
    describeSpace(kind);
    describeMerges(kind);
    describeRepeats(kind);
    describeModel(kind);
    describeConsistency(kind);
  });
}

const segmentsOf = (stage: IndexUnderTest) => stage.index().statistics().segments;
const recordsOf = (stage: IndexUnderTest) =>
  segmentsOf(stage).reduce((records, segment) => records + segment.records, 0);
const sealedOf = (stage: IndexUnderTest) =>
  segmentsOf(stage).filter(({ state }) => state === 'sealed').length;

function describeVisibility(kind: IndexKind): void {
  describe('visibility', () => {
    it('begins with the answer, and metadata are those that were written last', async () => {
      await using stage = await kind.open({});
      const shown = async () =>
        (await stage.search()).map(({ docId, metadata }) => `${docId} ${metadata}`).toSorted();
      expect(await shown()).toEqual([]);
      await stage.upsert([documentAt('a', 1, { version: 1 }), documentAt('b', 2, { version: 1 })]);
      expect(await stage.update('a', { version: 2 })).toBe(true);
      expect(await stage.update('c', {})).toBe(false);
      expect(await shown()).toEqual(['a {"version":2}', 'b {"version":1}']);
      expect(await stage.remove('b')).toBe(true);
      expect(await stage.remove('b')).toBe(false);
      expect((await stage.search({ version: 2 })).map(({ docId }) => docId)).toEqual(['a']);
      expect(await stage.search({ version: 1 })).toEqual([]);
      // An upsert that comes between must not be undone.
      const outcome = await stage.updateOnce('a', { version: 3 }, async () => {
        await stage.upsert([documentAt('a', 1, { version: 4 })]);
      });
      expect(outcome).toBe('changed');
      expect(await shown()).toEqual(['a {"version":4}']);
      expect(stage.errors).toEqual([]);
    });

    it('is in the order of document versions where scores tie, wherever merges put them', async () => {
      await using stage = await kind.open({ segmentTokenVectorsMax: 4, sealedSegmentsMax: 1 });
      const order = async (topK?: number) =>
        (await stage.search({ same: 1 }, topK)).map(({ docId, chunkIndex }) => `${docId}${chunkIndex}`);
      const { chunks } = documentAt('', 0);
      const upsert = (...ids: readonly string[]) =>
        stage.upsert(ids.map((docId) => ({ docId, metadata: { same: 1 }, chunks: [...chunks, ...chunks] })));
      // After a merge the older versions lie behind the younger ones.
      await upsert('c', 'b');
      await upsert('e', 'a');
      await upsert('d');
      await upsert('b');
      const expected = ['c0', 'c1', 'e0', 'e1', 'a0', 'a1', 'd0', 'd1', 'b0', 'b1'];
      expect(await order()).toEqual(expected);
      for (const settle of [() => tend(stage.index()), () => stage.mergeAll(), () => stage.reopen()]) {
        await settle();
        expect(await order()).toEqual(expected);
        expect(await order(3)).toEqual(expected.slice(0, 3));
      }
      expect([segmentsOf(stage).length, await stage.leftovers()]).toEqual([1, []]);
    });

    it('catches up with a commit whose answer was lost', async () => {
      await using stage = await kind.open({});
      const lost = new Error('the answer was lost');
      await expect(
        stage.upsert([documentAt('a', 0)], async (work) => {
          await work();
          throw lost;
        }),
      ).rejects.toBe(lost);
      expect(await docIds(stage)).toEqual(['a']);
      await expect(
        stage.index().commitDelete(async () => {
          await stage.commitDelete('a');
          throw lost;
        }),
      ).rejects.toBe(lost);
      expect(await docIds(stage)).toEqual([]);
      await stage.upsert([documentAt('b', 0)]);
      expect(await docIds(stage)).toEqual(['b']);
    });

    it('never begins for an upsert whose records are not durable or that the catalog refuses', async () => {
      await using stage = await kind.open({});
      await stage.upsert([documentAt('a', 0)]);
      for (const step of [kind.steps.durable, kind.steps.commit]) {
        stage.faults.set(step, new Error(`no ${step}`));
        await expect(stage.upsert([documentAt('a', 1), documentAt('b', 1)])).rejects.toThrow(step);
        expect(stage.faults.size).toBe(0);
        expect(await docIds(stage)).toEqual(['a']);
      }
      await stage.upsert([documentAt('c', 2)]);
      await stage.reopen();
      expect(await docIds(stage)).toEqual(['a', 'c']);
    });
  });
}

function describeSpace(kind: IndexKind): void {
  describe('space', () => {
    it('comes back after deletes: no segment holds a record of a deleted document', async () => {
      await using stage = await kind.open({ wasteAgeMsMax: 0 });
      await stage.upsert(Array.from({ length: 50 }, (_, place) => documentAt(`d${place}`, place % 8)));
      for (let place = 0; place < 50; place += 1) if (place !== 7) await stage.remove(`d${place}`);
      await tend(stage.index());
      expect(segmentsOf(stage).map(({ state, records }) => [state, records])).toEqual([['sealed', 1]]);
      expect(await docIds(stage)).toEqual(['d7']);
      expect(await stage.leftovers()).toEqual([]);
      await stage.remove('d7');
      await tend(stage.index());
      expect(segmentsOf(stage)).toEqual([]);
      expect(await stage.leftovers()).toEqual([]);
    });

    it('is not spent on rewriting before the waste is old or large', async () => {
      const now = { ms: 1_000 };
      await using stage = await kind.open({ wasteAgeMsMax: 12 * 3_600_000, nowMs: () => now.ms });
      await stage.upsert([documentAt('a', 0), documentAt('b', 1)]);
      await stage.remove('a');
      await tend(stage.index());
      expect(recordsOf(stage)).toBe(2);
      now.ms += 12 * 3_600_000;
      await tend(stage.index());
      expect(recordsOf(stage)).toBe(1);
      expect(await docIds(stage)).toEqual(['b']);
    });

    it.each(kind.steps.merge.flatMap((step) => [[step, 0] as const, [step, 1] as const]))(
      'is reclaimed in the end when %s fails during a merge after %i calls, and nothing is lost',
      async (step, calls) => {
        await using stage = await kind.open({ wasteAgeMsMax: 0 });
        await stage.upsert([documentAt('a', 0), documentAt('b', 1), documentAt('c', 2)]);
        await stage.remove('b');
        // This seals the active segment of a directory, so that the fault meets the merge.
        await stage.reopen();
        stage.faults.set(step, engineError('io', calls));
        await tend(stage.index());
        if (calls === 0) expect(stage.faults.size).toBe(0);
        stage.faults.clear();
        await stage.reopen();
        expect(await docIds(stage)).toEqual(['a', 'c']);
        expect(await stage.leftovers()).toEqual([]);
        await tend(stage.index());
        await tend(stage.index());
        expect(await docIds(stage)).toEqual(['a', 'c']);
        expect(await stage.leftovers()).toEqual([]);
        expect(recordsOf(stage)).toBe(2);
      },
    );
  });
}

function describeMerges(kind: IndexKind): void {
  const settings = { segmentTokenVectorsMax: 4, wasteAgeMsMax: 0 };

  describe('merges', () => {
    it('keep the bound while documents arrive, without being asked', async () => {
      await using stage = await kind.open({ segmentTokenVectorsMax: 4, sealedSegmentsMax: 3 });
      const ids = Array.from({ length: 60 }, (_, place) => `d${String(place).padStart(2, '0')}`);
      for (const id of ids) await stage.upsert([documentAt(id, 1)]);
      await expect.poll(() => sealedOf(stage)).toBeLessThanOrEqual(3);
      expect(await docIds(stage)).toEqual(ids);
      await stage.reopen();
      expect(await docIds(stage)).toEqual(ids);
      // The last segments may be sealed and merged only now.
      await stage.index().settled();
      expect(await stage.leftovers()).toEqual([]);
      expect(stage.errors).toEqual([]);
    });

    it('let commits go on while versions move, wherever they find them', async () => {
      await using stage = await kind.open(settings);
      const { merging, release } = await mergeUpTo(kind.steps.swap, stage);
      await stage.remove('d1');
      await stage.upsert([documentAt('d2', 5)]);
      expect(await docIds(stage)).toEqual(['d2', 'd3', 'd4', 'd5', 'd6', 'd7']);
      release();
      await merging;
      expect(await docIds(stage)).toEqual(['d2', 'd3', 'd4', 'd5', 'd6', 'd7']);
      await stage.remove('d3');
      await stage.reopen();
      expect(await docIds(stage)).toEqual(['d2', 'd4', 'd5', 'd6', 'd7']);
      expect(stage.errors).toEqual([]);
    });

    it('are given up when the index winds down, and commits go on finding what was moved', async () => {
      await using stage = await kind.open(settings);
      const { merging, release } = await mergeUpTo(kind.steps.swap, stage);
      stage.index().windDown();
      release();
      await merging;
      await stage.remove('d1');
      await stage.upsert([documentAt('d2', 5)]);
      expect(await docIds(stage)).toEqual(['d2', 'd3', 'd4', 'd5', 'd6', 'd7']);
      await stage.reopen();
      expect(await docIds(stage)).toEqual(['d2', 'd3', 'd4', 'd5', 'd6', 'd7']);
      await tend(stage.index());
      expect(await stage.leftovers()).toEqual([]);
      expect([stage.errors, stage.corrupt]).toEqual([[], []]);
    });
  });
}

function describeRepeats(kind: IndexKind): void {
  describe('a search runs again', () => {
    it('when a merge moved records while it ran', async () => {
      await using stage = await kind.open({ segmentTokenVectorsMax: 4, wasteAgeMsMax: 0 });
      for (let place = 0; place < 8; place += 1) await stage.upsert([documentAt(`d${place}`, 1)]);
      await tend(stage.index());
      await stage.remove('d0');
      const held = stage.hold('search');
      const searching = docIds(stage);
      await held.reached;
      await tend(stage.index());
      expect(recordsOf(stage)).toBe(7);
      expect(stage.repeats).toEqual(noRepeats());
      held.release();
      expect(await searching).toEqual(['d1', 'd2', 'd3', 'd4', 'd5', 'd6', 'd7']);
      expect(stage.repeats).toEqual({ ...noRepeats(), moved: 1 });
      await docIds(stage);
      expect(stage.repeats).toEqual({ ...noRepeats(), moved: 1 });
    });

    it('not when the merge came after its first slice: it holds its segments, and answers from its snapshot', async () => {
      await using stage = await kind.open({ segmentTokenVectorsMax: 4, wasteAgeMsMax: 0 });
      for (let place = 0; place < 8; place += 1) await stage.upsert([documentAt(`d${place}`, 1)]);
      await tend(stage.index());
      await stage.remove('d0');
      const before = await stage.search();
      const held = stage.hold('search', 1);
      const searching = stage.search();
      await held.reached;
      await tend(stage.index());
      expect(recordsOf(stage)).toBe(7);
      await stage.remove('d1');
      await stage.upsert([documentAt('d2', 1)]);
      held.release();
      expect(await searching).toEqual(before);
      expect(stage.repeats).toEqual(noRepeats());
      expect(await docIds(stage)).toEqual(['d2', 'd3', 'd4', 'd5', 'd6', 'd7']);
    });

    it('when values of metadata had to be loaded first', async () => {
      await using stage = await kind.open({});
      const found = async () => {
        const results = await stage.search({}, undefined, '{"year":{"gt":2000}}');
        return results.map(({ docId }) => docId).toSorted();
      };
      const upsert = (docId: string, year: number) => stage.upsert([documentAt(docId, 1, { year })]);
      await upsert('a', 2001);
      await upsert('b', 1999);
      expect(stage.repeats.values).toBe(0);
      for (const _again of [1, 2]) {
        expect(await found()).toEqual(['a']);
        expect(stage.repeats.values).toBe(1);
      }
      await upsert('c', 2002);
      expect(await found()).toEqual(['a', 'c']);
      expect(stage.repeats.values).toBe(2);
    });
  });
}
