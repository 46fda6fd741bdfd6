/**
 * Placement at many tenants, simulated: how often a node has the index that a search wants, what it fetches else, how even
 * the load is, and what follows when a node is lost with its disk and when an empty one takes its place.
 */
import { benchmark, type OptionsOf } from '../lib/benchmark.ts';
import { describeEnvironment, type Environment } from '../lib/environment.ts';
import { integer, integers, names, positiveNumber, positiveNumbers } from '../lib/options.ts';
import { seededRandom } from '../lib/seeded-random.ts';
import { maximum, mean, sum } from '../lib/statistics.ts';
import { markdownTable } from '../lib/table.ts';
import { balances, type Balance } from './balancer.ts';
import { Simulation, type Span } from './simulation.ts';
import { createTenants } from './tenants.ts';

const settings = {
  tenants: integer(1_000_000, 'tenants, of one index each'),
  skews: positiveNumbers('0.8,1,1.2', 'exponents of Zipf: how unevenly they are searched'),
  chunks: integer(10_000, 'mean chunks of an index'),
  sigma: positiveNumber(2, 'standard deviation of the logarithm of the chunks of an index'),
  nodes: integer(24, 'nodes', 2),
  cacheGib: integers('1024', 'bounds of the cache of a node'),
  openMax: integer(256, 'indexes that a node has open'),
  balances: names(balances, 'how requests get to nodes'),
  points: integers('1600', 'points of a node on the ring: 16 for each unit of weight of a server of HAProxy'),
  balanceFactor: integer(
    150,
    'percent of its share that a node may have in flight, where it is bounded',
    101,
  ),
  rate: integer(10_000, 'searches a second'),
  searchMs: positiveNumber(10, 'milliseconds of a search'),
  fetchMibPerSecond: integer(500, 'that a node gets from the object store'),
  warmUp: integer(3_000, 'seconds before it counts'),
  seconds: integer(300, 'that count'),
  seed: integer(1, 'of all that is drawn'),
};

interface Scenario {
  readonly skew: number;
  readonly cacheGib: number;
  readonly balance: Balance;
  readonly points: number;
}

interface Row extends Scenario {
  readonly meanIndexBytes: number;
  readonly steady: Span;
  /** Spans after a node was lost, and after an empty one took its place. */
  readonly lost: readonly Span[];
  readonly replaced: readonly Span[];
}

interface Report {
  readonly environment: Environment;
  readonly rows: readonly Row[];
}

export const placement = benchmark({
  name: 'placement',
  summary: 'simulation of placement and cache misses at many tenants',
  settings,
  run,
  render,
});

/** Spans after a change, one after the other. */
const afterSeconds = [10, 50, 240];
const lostNode = 0;

function run(options: OptionsOf<typeof settings>): Promise<Report> {
  const rows: Row[] = [];
  const report = { environment: describeEnvironment(options.command, 'none', []), rows };
  for (const scenario of scenariosOf(options)) {
    const row = simulate(scenario, options);
    rows.push(row);
    options.onProgress(cells(row).join('  '));
    options.save(report);
  }
  return Promise.resolve(report);
}

function scenariosOf(options: OptionsOf<typeof settings>): readonly Scenario[] {
  return options.skews.flatMap((skew) =>
    options.cacheGib.flatMap((cacheGib) =>
      options.balances.flatMap((balance) =>
        // Nothing is on a ring where nodes are chosen at random.
        (balance === 'random' ? [0] : options.points).map((points) => ({ skew, cacheGib, balance, points })),
      ),
    ),
  );
}

function simulate(scenario: Scenario, options: OptionsOf<typeof settings>): Row {
  const random = seededRandom(options.seed);
  const tenants = createTenants({
    tenants: options.tenants,
    skew: scenario.skew,
    meanChunks: options.chunks,
    sigma: options.sigma,
    random,
  });
  const simulation = new Simulation({
    ...scenario,
    tenants,
    nodes: options.nodes,
    balanceFactor: options.balanceFactor,
    cacheBytes: scenario.cacheGib * 2 ** 30,
    openMax: options.openMax,
    requestsPerSecond: options.rate,
    searchMs: options.searchMs,
    fetchBytesPerSecond: options.fetchMibPerSecond * 2 ** 20,
    random,
  });
  simulation.run(options.warmUp);
  const steady = simulation.run(options.seconds);
  simulation.lose(lostNode);
  const lost = afterSeconds.map((seconds) => simulation.run(seconds));
  simulation.replace(lostNode);
  const replaced = afterSeconds.map((seconds) => simulation.run(seconds));
  return { ...scenario, meanIndexBytes: mean(Array.from(tenants.bytes)), steady, lost, replaced };
}

function render({ rows }: Report): string {
  const spans = afterSeconds.map((seconds, place) => {
    const from = sum(afterSeconds.slice(0, place));
    return `${from} to ${from + seconds} s`;
  });
  const header = [
    'skew',
    'cache GiB',
    'balance',
    'points',
    'open %',
    'disk %',
    'fetched %',
    'fetched a second',
    'MiB/s a node',
    'GETs a second',
    'busiest node',
    'fullest disk',
    ...spans.map((span) => `lost: ${span}, fetched %`),
    ...spans.map((span) => `replaced: ${span}, fetched %`),
  ];
  const size = `an index has ${((rows[0]?.meanIndexBytes ?? 0) / 1e6).toFixed(1)} MB in the mean`;
  return `${[...markdownTable(header, rows.map(cells)), '', size].join('\n')}\n`;
}

function cells({ skew, cacheGib, balance, points, steady, lost, replaced }: Row): readonly string[] {
  const nodes = steady.requestsByNode.length;
  const coldShare = ({ cold, requests }: Span): string => percent(cold / requests);
  return [
    String(skew),
    String(cacheGib),
    balance,
    points === 0 ? '' : String(points),
    percent(1 - (steady.warm + steady.cold) / steady.requests),
    percent(steady.warm / steady.requests),
    coldShare(steady),
    (steady.cold / steady.seconds).toFixed(0),
    (steady.fetchedBytes / steady.seconds / nodes / 2 ** 20).toFixed(0),
    (steady.fetchedObjects / steady.seconds).toFixed(0),
    ((maximum(steady.requestsByNode) * nodes) / steady.requests).toFixed(2),
    steady.diskShareMax.toFixed(2),
    ...lost.map(coldShare),
    ...replaced.map(coldShare),
  ];
}

function percent(share: number): string {
  return (share * 100).toFixed(1);
}
