/**
 * Whether limits were kept, by what clients saw. An admission lies between its request and its answer, so admissions
 * whose requests and answers all lie within a minute have been in one window. Times are of the machine's steady clock.
 */

export interface Span {
  readonly from: number;
  readonly to: number;
}

const windowMs = 60_000;

export class Admissions {
  readonly #admitted: Span[] = [];
  readonly #held: Span[] = [];
  /** While Redis was away, and shares were in force for a minute after. */
  readonly #away: Span[] = [];

  admitted(span: Span): void {
    this.#admitted.push(span);
  }

  /** A slot was held for at least so long. */
  held(span: Span): void {
    this.#held.push(span);
  }

  redisWasAway(span: Span): void {
    this.#away.push(span);
  }

  /** The most admissions in a minute that Redis decided alone, and in any. */
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

  /** The most slots that were held at one moment. */
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

  /** Redis lost its memory, or nodes did not ask it: what was before and what was after do not add up. */
  #isAway({ from, to }: Span): boolean {
    return this.#away.some((span) => span.from <= to && from <= span.to + windowMs);
  }
}
