/**
 * Moments of an index that grows and whose texts become others, bit by bit. Between two moments some searches are measured. At each the reported
 * recall stands beside the true one: that of all queries, by exact searches.
 */
import type { Random } from '../../support/running/random.ts';
import type { ChangingIndex, Texts } from './changing-index.ts';

export interface Story {
  readonly index: ChangingIndex;
  readonly random: Random;
  /** Searches are drawn from these alone, so the true recall is known without an error. */
  readonly queries: readonly Float32Array[];
  /** The texts that each moment adds, of which there are more each time than it removes. */
  readonly texts: (moment: number) => Texts | Promise<Texts>;
  readonly moments: number;
  /** Searches that are measured between two moments. */
  readonly measured: number;
  /** The share of the texts before that each moment removes. */
  readonly removed: number;
}

export interface Moment {
  readonly breadth: number;
  readonly searches: number;
  readonly truth: number;
  readonly mean: number;
  readonly low: number;
  readonly high: number;
  readonly holds: boolean;
}

export async function momentsOf(story: Story): Promise<readonly Moment[]> {
  const { index, random, queries } = story;
  const found: Moment[] = [];
  for (let moment = 0; moment < story.moments; moment += 1) {
    await index.replace(await story.texts(moment), story.removed);
    await index.measure(story.measured, () => random.pick(queries));
    const { breadth, report } = index.recall;
    const truth = await index.truth(queries);
    if (report === undefined) continue;
    const { mean, low, high } = report.at10;
    found.push({
      breadth,
      searches: report.comparisons,
      truth,
      mean,
      low,
      high,
      holds: low <= truth && truth <= high,
    });
  }
  console.table(found);
  return found;
}
