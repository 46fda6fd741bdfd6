/**
 * How many requests of an import are in flight, and how many documents each of them has: no input, no output, no clock.
 *
 * A service that is short of processor time passes the deadline of an upsert, and all work on that request is thrown away.
 * The same request again would end the same way. So the import first sends fewer requests at once, then smaller ones, down to
 * one document. It grows again slowly, first the requests and then their number. The Python client has the same in `pace.py`,
 * and `test/clients/cases/pace.json` has the cases for both.
 */
export const documentsMax = 50;
/** Batches that must be stored before the import grows by a step. */
const storedPerStep = 20;
/** A document that comes late so often in a request of its own is given up. */
const attemptsAlone = 3;
/** So many documents that are given up in a row end the import, because the service is not able to store any. */
const givenUpInRowMax = 3;

/** A batch that was sent and came late: the service needed more than half of its deadline, and did not store it. */
export interface LateBatch {
  readonly documents: number;
  /** The most requests that were in flight at once with it. */
  readonly beside: number;
  /** How often it came late before, or the batch that it was cut out of. A document alone begins anew. */
  readonly lates: number;
}

/** A number says: send it again, in parts of so many documents. */
export type Verdict = number | 'give up' | 'end';

export class Pace {
  /** Requests in flight at once. */
  requests: number;
  /** Documents of one request. */
  documents = documentsMax;
  readonly #requestsMax: number;
  #stored = 0;
  #givenUpInRow = 0;

  constructor(requestsMax: number) {
    this.#requestsMax = Math.max(1, requestsMax);
    this.requests = this.#requestsMax;
  }

  stored(): void {
    this.#givenUpInRow = 0;
    this.#stored += 1;
    if (this.#stored % storedPerStep !== 0) return;
    if (this.documents < documentsMax) this.documents = Math.min(documentsMax, this.documents * 2);
    else this.requests = Math.min(this.#requestsMax, this.requests + 1);
  }

  /** The concurrency limit of the tenant refused a request. */
  refused(): void {
    this.#stored = 0;
    this.requests = Math.max(1, this.requests - 1);
  }

  late({ documents, beside, lates }: LateBatch): Verdict {
    const half = Math.max(1, Math.floor(documents / 2));
    this.#stored = 0;
    if (beside > 0) this.requests = Math.max(1, this.requests - 1);
    else {
      this.requests = 1;
      this.documents = Math.min(this.documents, half);
    }
    if (documents > 1) return beside > 0 && lates === 0 ? documents : half;
    if (lates + 1 < attemptsAlone) return 1;
    this.#givenUpInRow += 1;
    return this.#givenUpInRow < givenUpInRowMax ? 'give up' : 'end';
  }
}
