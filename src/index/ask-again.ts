/**
 * The one loop that runs a search again. It has no bound of its own: whatever mends a reason waits until the deadline of the
 * request at most, and a search whose caller has gone ends there or when its turn comes.
 */

/** How often searches ran again, by the reason. */
export interface Repeats {
  /** A merge moved records while the search ran. */
  moved: number;
  /** Values of metadata were missing, and are loaded now. */
  values: number;
  /** Parts of a segment were missing on this node, and are fetched now. */
  parts: number;
  /** There was no room in memory, and an idle index is closed now. */
  memory: number;
  /** A document of the answer had expired, and is ended now. */
  expired: number;
}

export function noRepeats(): Repeats {
  return { moved: 0, values: 0, parts: 0, memory: 0, expired: 0 };
}

/** Mends the reason of a failure. Resolves to `undefined` when nothing would mend it. */
export type Mend = (error: unknown) => Promise<keyof Repeats | undefined>;

/** Runs `ask`, and again after each failure that `mend` mends. */
export async function askAgain<T>(repeats: Repeats, mend: Mend, ask: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      const reason = await mend(error);
      if (reason === undefined) throw error;
      repeats[reason] += 1;
    }
  }
}
