/**
 * Finds how many padded tokens a document batch should have on a device: rates are measured over doubling budgets, and the
 * smallest budget within 3% of the best rate wins, because a query waits for the batch that runs. Knows no encoder:
 * what measures is handed in.
 */
export interface BudgetRate {
  readonly batchTokens: number;
  readonly tokensPerSecond: number;
}

export interface BudgetMeasurement {
  readonly tokensPerSecond: number;
  readonly residentBytes: number;
}

export interface BudgetSweepOptions {
  /** Ascending. */
  readonly candidates: readonly number[];
  /** Rejects when a batch of this size cannot run, out of memory for one: larger ones are then not tried. */
  readonly measure: (batchTokens: number) => Promise<BudgetMeasurement>;
  /** The first budget that brings the process above this is the last one tried, and not taken. */
  readonly residentBytesMax: number;
}

export interface BudgetSweep {
  /** Undefined when not even the smallest budget ran. */
  readonly chosen: BudgetRate | undefined;
  readonly rates: readonly BudgetRate[];
  readonly ended: 'all measured' | 'slower' | 'memory' | 'failed';
}

const tolerance = 0.03;
/** Each budget counts with its better measurement; the first also warms its shapes up. */
const passes = 2;
/** So many budgets in a row below the best end the sweep: on a CPU each doubling costs twice the time. */
const slowerMax = 2;

export function documentBudgets(provider: 'cpu' | 'cuda'): readonly number[] {
  const largest = provider === 'cpu' ? 16_384 : 65_536;
  const budgets: number[] = [];
  for (let tokens = 64; tokens <= largest; tokens *= 2) budgets.push(tokens);
  return budgets;
}

export async function sweepBudgets(options: BudgetSweepOptions): Promise<BudgetSweep> {
  const rates: BudgetRate[] = [];
  const done = (ended: BudgetSweep['ended']): BudgetSweep => ({
    chosen: smallestNearBest(rates),
    rates,
    ended,
  });
  for (const batchTokens of options.candidates) {
    let tokensPerSecond = 0;
    for (let pass = 0; pass < passes; pass++) {
      let measured: BudgetMeasurement;
      try {
        measured = await options.measure(batchTokens);
      } catch (error) {
        if (error instanceof SweepStopped) throw error;
        return done('failed');
      }
      if (measured.residentBytes > options.residentBytesMax) return done('memory');
      tokensPerSecond = Math.max(tokensPerSecond, measured.tokensPerSecond);
    }
    rates.push({ batchTokens, tokensPerSecond });
    const last = rates.slice(-slowerMax);
    if (rates.length > slowerMax && last.every((rate) => !nearBest(rate, rates))) return done('slower');
  }
  return done('all measured');
}

/** The smallest budget whose rate is within 3% of the best one; undefined for no rates. */
export function smallestNearBest(rates: readonly BudgetRate[]): BudgetRate | undefined {
  return rates.toSorted((a, b) => a.batchTokens - b.batchTokens).find((rate) => nearBest(rate, rates));
}

function nearBest(rate: BudgetRate, rates: readonly BudgetRate[]): boolean {
  const best = Math.max(...rates.map(({ tokensPerSecond }) => tokensPerSecond));
  return rate.tokensPerSecond >= best * (1 - tolerance);
}

/** Thrown by what measures when the sweep should end without a result. */
export class SweepStopped extends Error {
  override readonly name = 'SweepStopped';
}
