/**
 * Checks which version of each document a search may see. It must see the last version that was answered before the search
 * began, or a later one that had begun before the search ended. It must not see an older version than an earlier search saw.
 * An operation that failed may have happened or not, and so may an answered one whose commit was lost since.
 */

interface Operation {
  readonly beganAt: number;
  answeredAt: number | undefined;
  /** Whether the document exists after the operation. */
  readonly stored: boolean;
}

/** Operation 0: the document has never existed. */
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

  /** A moment is a number that grows with each event. */
  now(): number {
    this.#now += 1;
    return this.#now;
  }

  /** Notes that the writer of a document begins an operation. Returns its number, which an upsert stores as the version. */
  begin(docId: string, stored: boolean): { readonly place: number; readonly answered: () => void } {
    const { operations } = this.#of(docId);
    const operation: Operation = { beganAt: this.now(), answeredAt: undefined, stored };
    this.operations += 1;
    return {
      place: operations.push(operation) - 1,
      answered: () => {
        // The operation may have been committed before the loss.
        if (operation.beganAt > this.#lostAt) operation.answeredAt = this.now();
      },
    };
  }

  /** Notes that commits are about to be lost. Until `lostSince` is called, searches are not checked. */
  loses(): void {
    this.#lostAt = Infinity;
  }

  /** Notes that commits after a moment may be lost. Operations that are answered from now on are not. */
  lostSince(moment: number): void {
    this.#lostAt = this.now();
    for (const document of this.#documents.values()) {
      for (const operation of document.operations) {
        if ((operation.answeredAt ?? 0) > moment) operation.answeredAt = undefined;
      }
      document.seen = document.seen.filter(({ at }) => at <= moment);
    }
  }

  /** Throws if a search saw a wrong version. `versions` has the version of each document that it found. */
  check(beganAt: number, versions: ReadonlyMap<string, number>): void {
    const endedAt = this.now();
    this.searches += 1;
    // The search may have seen a commit that was lost later.
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
