/** The turns of a search that gives way. */
import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { inSlices } from '../../../src/index/slices.ts';
import type { RequestContext } from '../../../src/service/contract.ts';
import { FairQueue, type Piece, type Place } from '../../../src/service/limits/fair-queue.ts';
import { longWork, sliceWork } from '../../../src/service/limits/work.ts';
import { searchAsker } from '../../../src/service/operations/search.ts';

const contextWith = (signal = new AbortController().signal) =>
  ({ signal, deadlineMs: Date.now() + 60_000 }) as RequestContext;

/** A search of three slices, each of which a test ends. */
function threeSlices() {
  const ends: (() => void)[] = [];
  const state = { closed: false };
  const begin = () => ({
    next: async (): Promise<string | undefined> => {
      await new Promise<void>((resolve) => ends.push(resolve));
      return ends.length === 3 ? 'found' : undefined;
    },
    close: () => {
      state.closed = true;
    },
  });
  return { ends, state, begin };
}

it('a piece of another tenant runs between two slices, and then the search goes on', async () => {
  const queue = new FairQueue({ runningMax: 1 });
  const place = queue.enter('a', 3 * sliceWork);
  const search = threeSlices();
  const { inTurn } = searchAsker(contextWith(), place, 3 * sliceWork);
  const searching = inSlices(search.begin, inTurn);
  await turn();
  const started: string[] = [];
  const other = queue.run('b', { work: 10 }, async () => void started.push('b'));
  await turn();
  expect([search.ends.length, started]).toEqual([1, []]);
  search.ends[0]!();
  await other;
  await turn();
  expect([search.ends.length, started]).toEqual([2, ['b']]);
  search.ends[1]!();
  await turn();
  search.ends[2]!();
  expect(await searching).toBe('found');
  expect(search.state.closed).toBe(true);
  place.leave();
  expect(queue.size).toBe(0);
});

it('a search whose caller has gone takes no further turn, and is freed', async () => {
  const queue = new FairQueue({ runningMax: 1 });
  const place = queue.enter('a', sliceWork);
  const caller = new AbortController();
  const search = threeSlices();
  const { inTurn } = searchAsker(contextWith(caller.signal), place, sliceWork);
  const searching = inSlices(search.begin, inTurn);
  await turn();
  caller.abort(new Error('gone'));
  search.ends[0]!();
  await expect(searching).rejects.toThrow('gone');
  expect([search.ends.length, search.state.closed]).toEqual([1, true]);
  place.leave();
});

it('each turn counts as a slice at most, and one after the first as long, whatever was estimated', async () => {
  const works: number[] = [];
  const place: Place = {
    run: (piece: Piece, task) => {
      works.push(piece.work);
      return task();
    },
    leave: () => undefined,
  };
  const turnsOf = async (work: number, outcomes: (string | Error | undefined)[]) => {
    works.length = 0;
    const { inTurn } = searchAsker(contextWith(), place, work);
    for (const outcome of outcomes) {
      const task = async () => {
        if (outcome instanceof Error) throw outcome;
        return outcome;
      };
      await inTurn(task).catch(() => undefined);
    }
    return [...works];
  };
  const unfinished = undefined;
  expect(await turnsOf(40, ['found'])).toEqual([40]);
  expect(await turnsOf(40, [unfinished, 'found'])).toEqual([40, longWork + 1]);
  const left = [sliceWork, sliceWork, sliceWork / 2, longWork + 1];
  expect(await turnsOf(2.5 * sliceWork, [unfinished, unfinished, unfinished, 'found'])).toEqual(left);
  // A search that begins again has not given way.
  expect(await turnsOf(40, [new Error('values are missing'), 'found'])).toEqual([40, 40]);
});
