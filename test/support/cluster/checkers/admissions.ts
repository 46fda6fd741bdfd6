/**
 * Checks that limits were kept, from the times that clients saw. A request is admitted between its start and its answer. So
 * requests that all began and were answered within one minute were admitted in one window. Times are of the steady clock.
 */

export interface Span {
  readonly from: number;
  readonly to: number;
}

const windowMs = 60_000;

export class Admissions {
  readonly #admitted: Span[] = [];
  readonly #held: Span[] = [];
  /** Times at which Redis was away. For a minute after, nodes still admit by shares. */
  readonly #away: Span[] = [];

  admitted(span: Span): void {
    this.#admitted.push(span);
  }

  /** The least time for which a slot was held. */
  held(span: Span): void {
    this.#held.push(span);
  }

  redisWasAway(span: Span): void {
    this.#away.push(span);
  }

  /** The most admissions in a minute: in minutes that Redis alone decided, and in all minutes. */
  mostInMinute(): { readonly answering: number; readonly any: number } {
    const inOrder = this.#admitted.toSorted((a, b) => a.from - b.from);
    const most = { answering: 0, any: 0 };
    for (const [place, { from }] of inOrder.entries()) {
      const window = { from, to: from + windowMs };
      let count = 0;
      for (const admission of inOrder.slice(place)) {
        if (admission.from > window.to) break;
        if (admission.to < window.to) count += 1;
      }
      most.any = Math.max(most.any, count);
      if (!this.#isAway(window)) most.answering = Math.max(most.answering, count);
    }
    return most;
  }

  /** The largest number of slots that were held at one moment. */
  mostAtOnce(): { readonly answering: number; readonly any: number } {
    const most = { answering: 0, any: 0 };
    for (const { from } of this.#held) {
      const count = this.#held.filter((span) => span.from <= from && from < span.to).length;
      most.any = Math.max(most.any, count);
      if (!this.#isAway({ from: from - windowMs, to: from }))
        most.answering = Math.max(most.answering, count);
    }
    return most;
  }

  /** Whether Redis was away in the span or in the minute before. Then Redis did not count all requests of the span. */
  #isAway({ from, to }: Span): boolean {
    return this.#away.some((span) => span.from <= to && from <= span.to + windowMs);
  }
}
