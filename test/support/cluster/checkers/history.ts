/**
 * What each document may look like to a search, from what its writer was answered: at least the last version answered
 * before the search began, at most the last one begun before it ended, and never an older one than any search has seen
 * that ended before. An operation that failed may have happened. So may one that was answered and whose commit was lost since.
 */

interface Operation {
  readonly beganAt: number;
  answeredAt: number | undefined;
  /** Whether the document is there afterwards. */
  readonly stored: boolean;
}

/** Operation 0: it was never there. */
const nothing = (): Operation => ({ beganAt: -1, answeredAt: -1, stored: false });

export class History {
  readonly #documents = new Map<
    string,
    { readonly operations: Operation[]; seen: { at: number; place: number }[] }
  >();
  #now = 0;
  #lostAt = -1;
  operations = 0;
  searches = 0;

  /** Moments are the order of events. */
  now(): number {
    this.#now += 1;
    return this.#now;
  }

  /** The writer of a document begins an operation; returns its number, which an upsert stores as the version. */
  begin(docId: string, stored: boolean): { readonly place: number; readonly answered: () => void } {
    const { operations } = this.#of(docId);
    const operation: Operation = { beganAt: this.now(), answeredAt: undefined, stored };
    this.operations += 1;
    return {
      place: operations.push(operation) - 1,
      answered: () => {
        // It may have been committed before the loss.
        if (operation.beganAt > this.#lostAt) operation.answeredAt = this.now();
      },
    };
  }

  /** Commits are about to be lost: until `lostSince` nobody knows what a search may see. */
  loses(): void {
    this.#lostAt = Infinity;
  }

  /** What was committed after a moment may be lost; what is answered from now on is not. */
  lostSince(moment: number): void {
    this.#lostAt = this.now();
    for (const document of this.#documents.values()) {
      for (const operation of document.operations) {
        if ((operation.answeredAt ?? 0) > moment) operation.answeredAt = undefined;
      }
      document.seen = document.seen.filter(({ at }) => at <= moment);
    }
  }

  /** Throws when a search saw what it must not. `versions`: of the documents that it found. */
  check(beganAt: number, versions: ReadonlyMap<string, number>): void {
    const endedAt = this.now();
    this.searches += 1;
    // It may have seen what was lost.
    if (beganAt < this.#lostAt) return;
    for (const [docId, document] of this.#documents) {
      const { operations } = document;
      const last = operations.findLastIndex(({ beganAt: at }) => at < endedAt);
      const answered = operations.findLastIndex(
        ({ answeredAt }) => answeredAt !== undefined && answeredAt < beganAt,
      );
      const seen = document.seen.filter(({ at }) => at < beganAt).map(({ place }) => place);
      const floor = Math.max(answered, ...seen);
      const version = versions.get(docId);
      const fits = (place: number): boolean =>
        version === undefined ? operations[place]?.stored === false : place === version;
      const places = Array.from({ length: last - floor + 1 }, (_value, place) => floor + place);
      const found = places.find(fits);
      if (found === undefined) {
        throw new Error(
          `${docId}: a search saw version ${version}, where ${floor} to ${last} might be: ${JSON.stringify(operations.slice(floor, last + 1))}`,
        );
      }
      document.seen = [
        ...document.seen.filter(({ at }) => at >= beganAt - 1_000),
        { at: endedAt, place: found },
      ].slice(-64);
    }
  }

  #of(docId: string) {
    const known = this.#documents.get(docId);
    if (known !== undefined) return known;
    const made = { operations: [nothing()], seen: [] };
    this.#documents.set(docId, made);
    return made;
  }
}
