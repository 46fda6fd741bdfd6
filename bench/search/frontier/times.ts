/** The times of one contender's searches. */
import { mean, quantile } from '../../lib/statistics.ts';

/** Milliseconds by the clock on the wall, or of processor time of all threads of this process. */
export const clocks = {
  wall: (): number => performance.now(),
  processor: (): number => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  },
} as const;
export type Clock = keyof typeof clocks;

/** One setting of one contender. */
export interface Point {
  readonly variant: string;
  readonly state: string;
  readonly kernel: string;
  readonly threads: number;
  readonly settings: string;
  /** All files that a search needs, by the tokens of the text. Null where nothing is compared with peers. */
  readonly bytes_a_token: number | null;
  /** Beside an exhaustive scan of the stored rows; of the rows that peers have, where there are peers. */
  readonly recall_at_10: number;
  readonly recall_at_100: number;
  /** Beside an exhaustive scan of those rows scaled to length 1. Null where there are no peers. */
  readonly unit_recall_at_10: number | null;
  /** Beside an exhaustive scan of the pooled rows. Null for other rows. */
  readonly scan_recall_at_10: number | null;
  readonly p50_ms: number;
  readonly p99_ms: number;
  /** Means of the searches that count: choosing candidates, and scoring them exactly. */
  readonly candidates_ms: number | null;
  readonly exact_ms: number | null;
}

export interface Stages {
  readonly plan: string;
  readonly candidatesMs: number;
  readonly exactMs: number;
}

/** Each query counts with the least of its times. */
export class Times {
  readonly #least = new Map<number, number>();
  readonly #stages = new Map<number, Stages>();
  readonly #plans = new Set<string>();

  add(query: number, milliseconds: number, stages?: Stages): void {
    if (stages !== undefined) this.#plans.add(stages.plan);
    if (milliseconds >= (this.#least.get(query) ?? Number.POSITIVE_INFINITY)) return;
    this.#least.set(query, milliseconds);
    if (stages !== undefined) this.#stages.set(query, stages);
  }

  plans(): readonly string[] {
    return [...this.#plans].toSorted();
  }

  summary(): Pick<Point, 'p50_ms' | 'p99_ms' | 'candidates_ms' | 'exact_ms'> {
    const times = [...this.#least.values()];
    const stages = [...this.#stages.values()];
    return {
      p50_ms: quantile(times, 0.5),
      p99_ms: quantile(times, 0.99),
      candidates_ms: stages.length === 0 ? null : mean(stages.map(({ candidatesMs }) => candidatesMs)),
      exact_ms: stages.length === 0 ? null : mean(stages.map(({ exactMs }) => exactMs)),
    };
  }
}
