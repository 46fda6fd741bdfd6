/** A seeded generator, so that a failing random test can be run again from its printed seed. */
import { seededRandom } from '../../../bench/lib/seeded-random.ts';

export interface Random {
  readonly seed: number;
  /** Uniform in [0, 1). */
  next(): number;
  /** Uniform integer in [minimum, maximum]. */
  integer(minimum: number, maximum: number): number;
  pick<Item>(items: readonly Item[]): Item;
}

export function createRandom(seed: number): Random {
  const next = seededRandom(seed);
  const integer = (minimum: number, maximum: number): number =>
    minimum + Math.floor(next() * (maximum - minimum + 1));
  return {
    seed,
    next,
    integer,
    pick<Item>(items: readonly Item[]): Item {
      if (items.length === 0) throw new Error('this is a bug: nothing to pick from');
      return items[integer(0, items.length - 1)] as Item;
    },
  };
}

/** A generator with a fresh seed, or with the one in `TEST_SEED`; the seed is printed either way. */
export function announceRandom(name: string): Random {
  const seed = Number(process.env['TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
  console.log(`${name}: seed ${seed} (TEST_SEED=${seed} repeats it)`);
  return createRandom(seed);
}
