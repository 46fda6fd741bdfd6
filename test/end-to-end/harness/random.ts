/** A seeded generator (mulberry32), so that a failing random test can be run again from its printed seed. */

export interface Random {
  readonly seed: number;
  /** Uniform in [0, 1). */
  next(): number;
  /** Uniform integer in [minimum, maximum]. */
  integer(minimum: number, maximum: number): number;
  pick<Item>(items: readonly Item[]): Item;
}

export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
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
