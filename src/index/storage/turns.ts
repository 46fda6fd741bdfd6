/** Runs at most `most` pieces of work at a time, in the order in which they came. */
export function turns(most: number): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    if (running >= most) await new Promise<void>((resolve) => void waiting.push(resolve));
    else running += 1;
    try {
      return await work();
    } finally {
      // The next one takes this turn over.
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
}
