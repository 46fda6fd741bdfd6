import { describe, expect, it } from 'vitest';
import { seededRandom } from '../lib/seeded-random.ts';
import { Balancer, type Balance } from './balancer.ts';
import { NodeCache } from './node-cache.ts';
import { Simulation, type SimulationOptions } from './simulation.ts';
import { chunkTokenVectors, createTenants, objectsOf, tokenVectorBytes } from './tenants.ts';

const count = 2_000;

function tenantsOf(skew: number, sigma: number) {
  return createTenants({ tenants: count, skew, meanChunks: 100, sigma, random: seededRandom(7) });
}

describe('tenants', () => {
  it('are searched by the law of Zipf', () => {
    const tenants = tenantsOf(1, 1);
    const draws = 400_000;
    const seen = new Uint32Array(count);
    for (let draw = 0; draw < draws; draw += 1) seen[tenants.next()]! += 1;
    const harmonic = Array.from(seen, (_times, rank) => 1 / (rank + 1)).reduce((sum, share) => sum + share);
    for (const rank of [1, 2, 10, 100]) {
      const expected = draws / harmonic / rank;
      // Four standard deviations of what chance allows.
      expect(Math.abs(seen[rank - 1]! - expected)).toBeLessThan(4 * Math.sqrt(expected));
    }
  });

  it('have indexes of the mean size, most of them smaller', () => {
    const { bytes } = createTenants({
      tenants: 200_000,
      skew: 1,
      meanChunks: 10_000,
      sigma: 1,
      random: seededRandom(7),
    });
    const sorted = bytes.toSorted();
    const mean = bytes.reduce((sum, each) => sum + each) / bytes.length;
    const chunkBytes = chunkTokenVectors * tokenVectorBytes;
    expect(mean / chunkBytes / 10_000).toBeCloseTo(1, 1);
    expect(sorted[100_000]! / chunkBytes / 10_000).toBeCloseTo(Math.exp(-0.5), 1);
  });

  it('have as many objects as segments and what is derived from them', () => {
    expect([1_000, 32_768, 131_073, 10 ** 9].map(objectsOf)).toEqual([1, 4, 7, 25]);
  });
});

describe('the cache of a node', () => {
  it('evicts what was opened longest ago, a tenth of its bound at a time', () => {
    const cache = new NodeCache({ bytesMax: 100, openMax: 1 });
    for (let index = 0; index < 10; index += 1) expect(cache.use(index, 10)).toBe('cold');
    expect(cache.use(0, 10)).toBe('warm');
    // 110 bytes: 1 and 2 go, 0 was opened since.
    expect(cache.use(10, 10)).toBe('cold');
    expect(cache.diskBytes).toBe(90);
    expect([0, 3, 1].map((index) => cache.use(index, 10))).toEqual(['warm', 'warm', 'cold']);
  });

  it('uses no file of an open index, and frees one that went when the index is closed', () => {
    const cache = new NodeCache({ bytesMax: 100, openMax: 2 });
    cache.use(0, 60);
    cache.use(1, 60);
    expect(cache.use(0, 60)).toBe('open');
    expect(cache.diskBytes).toBe(120);
    cache.use(2, 30);
    // 1 was used longest ago; it is closed, and its files are the only ones with names.
    expect(cache.use(0, 60)).toBe('open');
    cache.use(3, 1);
    cache.use(4, 1);
    expect(cache.use(0, 60)).toBe('cold');
  });
});

describe('a balancer', () => {
  const nodes = 6;
  const options = { nodes, indexes: count, points: 200, balanceFactor: 125, random: seededRandom(3) };
  const nodesOf = (balancer: Balancer): readonly number[] =>
    Array.from({ length: count }, (_index, index) => {
      const node = balancer.choose(index);
      balancer.finished(node, 1);
      return node;
    });

  it('moves the indexes of a lost node alone, to all others, and back', () => {
    const balancer = new Balancer({ ...options, balance: 'index' });
    const before = nodesOf(balancer);
    expect(nodesOf(balancer)).toEqual(before);
    balancer.setUp(0, false);
    const after = nodesOf(balancer);
    const moved = after.filter((node, index) => node !== before[index]);
    expect(moved).toHaveLength(before.filter((node) => node === 0).length);
    expect(new Set(moved).size).toBe(nodes - 1);
    balancer.setUp(0, true);
    expect(nodesOf(balancer)).toEqual(before);
  });

  it.each([
    { points: 16, fullest: 1.53, emptiest: 0.62 },
    { points: 1_600, fullest: 1.04, emptiest: 0.96 },
  ])('gives nodes shares of indexes as even as their $points points', ({ points, fullest, emptiest }) => {
    const indexes = 1_000_000;
    const balancer = new Balancer({ ...options, balance: 'index', nodes: 24, indexes, points });
    const counts = Array.from({ length: 24 }, () => 0);
    for (let index = 0; index < indexes; index += 1) counts[balancer.choose(index)]! += 1;
    expect((Math.max(...counts) * 24) / indexes).toBeCloseTo(fullest, 2);
    expect((Math.min(...counts) * 24) / indexes).toBeCloseTo(emptiest, 2);
  });

  it('spreads one index over nodes where the load is bounded', () => {
    const inFlightAt = (balance: Balance): number => {
      const balancer = new Balancer({ ...options, balance });
      const inFlight = Array.from({ length: nodes }, () => 0);
      for (let request = 0; request < 600; request += 1) inFlight[balancer.choose(0)]! += 1;
      return Math.max(...inFlight);
    };
    expect(inFlightAt('index')).toBe(600);
    expect(inFlightAt('bounded')).toBe(125);
  });
});

describe('a simulation', () => {
  const defaults = {
    nodes: 1,
    balance: 'index',
    points: 100,
    balanceFactor: 125,
    openMax: 1,
    requestsPerSecond: 1_000,
    searchMs: 10,
    fetchBytesPerSecond: 500e6,
  } as const;

  function simulate(
    options: Partial<SimulationOptions> & { readonly skew?: number; readonly share: number },
  ) {
    const tenants = tenantsOf(options.skew ?? 1, 0.001);
    const all = tenants.bytes.reduce((sum, each) => sum + each);
    const cacheBytes = all * options.share;
    return new Simulation({ ...defaults, tenants, cacheBytes, random: seededRandom(5), ...options });
  }

  it.each([
    { skew: 0.8, share: 0.1 },
    { skew: 1, share: 0.2 },
    { skew: 1.2, share: 0.4 },
  ])('fetches as often as the approximation of Che says: skew $skew, cache of $share', ({ skew, share }) => {
    const simulation = simulate({ skew, share });
    simulation.run(100);
    const { requests, cold } = simulation.run(300);
    // Between a tenth below its bound and the bound.
    expect(cold / requests).toBeCloseTo(missesByChe(skew, share * 0.95 * count), 1.5);
  });

  it('fetches less where indexes keep to a node, and again what a lost node had', () => {
    const coldShares = (balance: Balance): readonly number[] => {
      const simulation = simulate({ balance, nodes: 8, share: 0.08 });
      simulation.run(100);
      const spans = [simulation.run(50)];
      simulation.lose(0);
      spans.push(simulation.run(2));
      return spans.map(({ cold, requests }) => cold / requests);
    };
    const [steady = 0, lost = 0] = coldShares('index');
    const [random = 0] = coldShares('random');
    expect(steady).toBeLessThan(random / 2);
    expect(lost).toBeGreaterThan(steady * 1.1);
  });
});

/** Che, Tung and Wang 2002: an index is there if it was asked for within a time in which `size` different ones are. */
function missesByChe(skew: number, size: number): number {
  const weights = Array.from({ length: count }, (_weight, rank) => (rank + 1) ** -skew);
  const total = weights.reduce((sum, weight) => sum + weight);
  const absentAfter = (time: number): readonly number[] =>
    weights.map((weight) => Math.exp((-weight / total) * time));
  let [low, high] = [0, 1e9];
  for (let step = 0; step < 100; step += 1) {
    const middle = (low + high) / 2;
    const there = count - absentAfter(middle).reduce((sum, absent) => sum + absent);
    if (there < size) low = middle;
    else high = middle;
  }
  return absentAfter(low).reduce((sum, absent, rank) => sum + absent * (weights[rank]! / total), 0);
}
