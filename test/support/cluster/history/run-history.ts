/** One run of the history battery. Clients work while faults are injected. Then the faults end, and everything is checked. */
import { seededRandom } from '../../../../bench/lib/seeded-random.ts';
import { openBattery, type Battery, type Servers } from './battery.ts';
import { Faults, losesCommits, type FaultCounts, type FaultKind } from './faults.ts';
import { Load } from './load.ts';
import { assertStoredWhole } from '../stored-objects.ts';

export interface RunOptions {
  /** Determines what clients and faults do. It does not determine in which order they act. */
  readonly seed: number;
  readonly operations: number;
  /** The run ends after this time, if it has made `operationsMin` by then. */
  readonly msMax?: number;
  /** The kinds of faults to inject; absent = all; empty = none. */
  readonly faults?: readonly FaultKind[];
  readonly pauseMs?: number;
  /** A planted fault that the run must find: in every node (`heads`), or made before the clients begin. */
  readonly planted?: 'heads' | ((battery: Battery) => Promise<void>);
}

export interface RunReport {
  readonly operations: number;
  readonly writes: number;
  readonly searches: number;
  /** Calls that were refused because a limit was reached. */
  readonly limited: number;
  /** `refused` = calls that were refused because of a fault; `lost` = calls that were never answered. */
  readonly refused: number;
  readonly lost: number;
  readonly seconds: number;
  readonly faults: FaultCounts;
  /** For the tenant with 60 requests a minute, and for the one with 9 slots. */
  readonly mostInMinute: { readonly answering: number; readonly any: number };
  readonly mostAtOnce: { readonly answering: number; readonly any: number };
  /** How often nodes reported each failure of a job in the background. */
  readonly background: Readonly<Record<string, number>>;
}

/** The time between two faults of Redis. It is so long that no minute is affected by two of them. */
const redisEveryMs = 200_000;
const pauseMsDefault = 1_000;
const progressMs = 60_000;
const longestMs = 12 * 3_600_000;

/** A run makes at least this many operations, however slow the machine is. */
export const operationsMin = 20;

/** Makes one run. Rejects at the first violation. */
export async function runHistory(servers: Servers, options: RunOptions): Promise<RunReport> {
  const { seed, operations, faults: kinds, pauseMs = pauseMsDefault, planted, msMax = longestMs } = options;
  const random = seededRandom(seed);
  const background: Record<string, number> = {};
  const ended = new AbortController();
  const defects: string[] = [];
  await using battery = await openBattery(servers, {
    random,
    ...(planted === 'heads' ? { planted } : {}),
    onBackgroundError: (job, message) => {
      const text = `${job}: ${message}`.replaceAll(/\d+|[0-9a-f-]{36}/g, '#').slice(0, 160);
      background[text] = (background[text] ?? 0) + 1;
      if (isDefect(message)) defects.push(text);
    },
  });
  if (typeof planted === 'function') await planted(battery);

  const { writer, rated, slotted } = battery;
  const nodes = battery.nodes.map(({ process: node }) => node);
  const load = new Load({ nodes, writer, limited: { rated, slotted }, random });
  const faults = new Faults(battery, {
    // Faults have a generator of their own. So the number of operations between two faults does not change which faults come.
    random: seededRandom(seed + 1),
    ...(kinds === undefined ? {} : { kinds }),
    pauseMs,
    redisEveryMs,
    redisWasAway: (span) => load.admissions.redisWasAway(span),
    keepCommits: () => load.keepCommits(),
  });
  const beganAt = performance.now();
  const injecting = kinds?.length === 0 ? Promise.resolve() : faults.run(ended.signal);
  // If the load fails, the run fails below.
  injecting.catch(() => undefined);
  const progress = setInterval(
    () => console.log(`history: ${load.operations} operations, ${JSON.stringify(faults.counts)}`),
    progressMs,
  );
  const startedMs = performance.now();
  const late = setInterval(() => {
    if (performance.now() - startedMs > msMax && load.operations >= operationsMin) load.stop();
  }, 100);
  try {
    await load.run(operations);
  } finally {
    clearInterval(late);
    clearInterval(progress);
    ended.abort();
    await injecting;
  }
  await load.lookEverywhere();
  const totals = await battery.catalog.usageTotals(writer.tenantId, monthNow());
  const mostInMinute = load.admissions.mostInMinute();
  const mostAtOnce = load.admissions.mostAtOnce();
  const violations = [
    ...load.ledger.violations(totals),
    ...defects,
    ...exceeded('requests a minute', mostInMinute, rated.limits.requestsPerMinute),
    ...exceeded('slots', mostAtOnce, slotted.limits.maxConcurrentRequests),
  ];
  if (violations.length > 0) throw new Error(violations.join('; '));
  await Promise.all(nodes.map((node) => node.kill()));
  await assertStoredWhole(
    battery,
    losesCommits.some((kind) => faults.counts[kind] !== undefined),
  );
  return {
    operations: load.operations,
    writes: load.history.operations,
    searches: load.history.searches,
    limited: load.limited,
    refused: load.refused,
    lost: load.lost,
    seconds: Math.round((performance.now() - beganAt) / 1000),
    faults: faults.counts,
    mostInMinute,
    mostAtOnce,
    background,
  };
}

/**
 * Describes limits that were exceeded. While Redis is away a window may hold the requests that Redis had admitted, and the
 * shares of the nodes: together the limit, but at least one for each node.
 */
function exceeded(
  what: string,
  most: { readonly answering: number; readonly any: number },
  limit: number,
): readonly string[] {
  return [
    ...(most.answering > limit ? [`${most.answering} of ${limit} ${what}`] : []),
    ...(most.any > 2 * limit + 3 ? [`${most.any} of ${limit} ${what} while Redis was away`] : []),
  ];
}

/** Whether a failure in the background is a defect. Losing the turn to another node is none, nor is a service that is away. */
function isDefect(message: string): boolean {
  return /this is a bug|is not one of this index|holds live versions|is not there|is not a function|undefined/.test(
    message,
  );
}

function monthNow(): string {
  return new Date().toISOString().slice(0, 7);
}
