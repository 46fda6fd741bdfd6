/**
 * Requests of many tenants at nodes with caches, in time. A request takes as long as a search, and as long as fetching when
 * its index has to be fetched; that a busy node is slower, or a full network, is not in it.
 */
import { Balancer, type Balance } from './balancer.ts';
import { NodeCache } from './node-cache.ts';
import type { Tenants } from './tenants.ts';

export interface SimulationOptions {
  readonly tenants: Tenants;
  readonly nodes: number;
  readonly balance: Balance;
  readonly points: number;
  readonly balanceFactor: number;
  /** For each node. */
  readonly cacheBytes: number;
  /** Indexes that a node has open. */
  readonly openMax: number;
  readonly requestsPerSecond: number;
  readonly searchMs: number;
  /** From the object store to one node. */
  readonly fetchBytesPerSecond: number;
  readonly random: () => number;
}

/** What was seen in a span of time. */
export interface Span {
  readonly seconds: number;
  readonly requests: number;
  /** Indexes opened from the disk. */
  readonly warm: number;
  /** Indexes fetched. */
  readonly cold: number;
  readonly fetchedBytes: number;
  readonly fetchedObjects: number;
  readonly requestsByNode: readonly number[];
  /** The fullest disk at its end, in proportion to the bound of its cache. */
  readonly diskShareMax: number;
}

export class Simulation {
  readonly #options: SimulationOptions;
  readonly #balancer: Balancer;
  readonly #caches: NodeCache[];
  readonly #ends: Ends;
  #nowMs = 0;

  constructor(options: SimulationOptions) {
    this.#options = options;
    this.#balancer = new Balancer({ ...options, indexes: options.tenants.count });
    this.#caches = Array.from({ length: options.nodes }, () => this.#emptyCache());
    this.#ends = new Ends(options.nodes, (node, requests) => this.#balancer.finished(node, requests));
  }

  /** It takes no more requests, and its disk is lost. */
  lose(node: number): void {
    this.#balancer.setUp(node, false);
    this.#caches[node] = this.#emptyCache();
  }

  /** A new one in the place of one that was lost: it has nothing. */
  replace(node: number): void {
    this.#balancer.setUp(node, true);
  }

  run(seconds: number): Span {
    const { tenants, requestsPerSecond, searchMs, fetchBytesPerSecond, random } = this.#options;
    const requestsByNode = Array.from(this.#caches, () => 0);
    const accesses = { open: 0, warm: 0, cold: 0 };
    let fetchedBytes = 0;
    let fetchedObjects = 0;
    const endsAt = this.#nowMs + seconds * 1_000;
    for (;;) {
      this.#nowMs -= (Math.log(1 - random()) * 1_000) / requestsPerSecond;
      if (this.#nowMs >= endsAt) break;
      this.#ends.advance(this.#nowMs);
      const index = tenants.next();
      const node = this.#balancer.choose(index);
      const bytes = tenants.bytes[index]!;
      const access = this.#caches[node]!.use(index, bytes);
      accesses[access] += 1;
      requestsByNode[node]! += 1;
      let takesMs = searchMs;
      if (access === 'cold') {
        fetchedBytes += bytes;
        fetchedObjects += tenants.objects[index]!;
        takesMs += (bytes / fetchBytesPerSecond) * 1_000;
      }
      this.#ends.add(node, this.#nowMs + takesMs);
    }
    this.#nowMs = endsAt;
    const fullest = Math.max(...this.#caches.map(({ diskBytes }) => diskBytes));
    return {
      seconds,
      requests: accesses.open + accesses.warm + accesses.cold,
      warm: accesses.warm,
      cold: accesses.cold,
      fetchedBytes,
      fetchedObjects,
      requestsByNode,
      diskShareMax: fullest / this.#options.cacheBytes,
    };
  }

  #emptyCache(): NodeCache {
    return new NodeCache({ bytesMax: this.#options.cacheBytes, openMax: this.#options.openMax });
  }
}

/** The longest that a request is in flight: a search has 10 s. */
const flightMsMax = 10_000;

/** When requests in flight end, counted by the millisecond. */
class Ends {
  readonly #nodes: number;
  readonly #finished: (node: number, requests: number) => void;
  readonly #counts: Uint16Array;
  #nowMs = 0;

  constructor(nodes: number, finished: (node: number, requests: number) => void) {
    this.#nodes = nodes;
    this.#finished = finished;
    this.#counts = new Uint16Array(nodes * (flightMsMax + 1));
  }

  add(node: number, atMs: number): void {
    const ms = Math.min(Math.ceil(atMs), this.#nowMs + flightMsMax);
    this.#counts[this.#at(ms) + node]! += 1;
  }

  advance(toMs: number): void {
    while (this.#nowMs + 1 <= toMs) {
      this.#nowMs += 1;
      const at = this.#at(this.#nowMs);
      for (let node = 0; node < this.#nodes; node += 1) {
        const requests = this.#counts[at + node]!;
        if (requests > 0) this.#finished(node, requests);
      }
      this.#counts.fill(0, at, at + this.#nodes);
    }
  }

  #at(ms: number): number {
    return (ms % (flightMsMax + 1)) * this.#nodes;
  }
}
