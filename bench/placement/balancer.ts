/**
 * Which node a request goes to. `index` is HAProxy's consistent hash: each node has points on a ring, and a request goes to
 * the node of the first point from its index on. `bounded` is the same with `hash-balance-factor`: a node that has more
 * than its share of the requests in flight is passed over. `random` knows no index.
 */
import { firstAbove } from '../lib/binary-search.ts';
import { seededRandom } from '../lib/seeded-random.ts';

export const balances = ['index', 'bounded', 'random'] as const;
export type Balance = (typeof balances)[number];

export interface BalancerOptions {
  readonly balance: Balance;
  readonly nodes: number;
  readonly indexes: number;
  /** On the ring, of each node; HAProxy gives a server 16 for each unit of its weight. */
  readonly points: number;
  /** Percent of its share that a node may have in flight. */
  readonly balanceFactor: number;
  readonly random: () => number;
}

export class Balancer {
  readonly #options: BalancerOptions;
  /** Nodes in the order of their points. */
  readonly #ring: Uint16Array;
  /** By index, the place of its first point. */
  readonly #places: Uint32Array;
  readonly #isUp: boolean[];
  readonly #inFlight: Uint32Array;
  #inFlightTotal = 0;
  #up: number;

  constructor(options: BalancerOptions) {
    this.#options = options;
    const { nodes, points, indexes } = options;
    // Any places will do, the same in every run: they are as good as those of a hash.
    const place = seededRandom(1);
    const ring = Array.from({ length: nodes * points }, (_point, number) => ({
      node: number % nodes,
      at: place(),
    })).toSorted((a, b) => a.at - b.at);
    this.#ring = Uint16Array.from(ring, ({ node }) => node);
    const at = Float64Array.from(ring, (point) => point.at);
    this.#places = Uint32Array.from({ length: indexes }, () => firstAbove(at, place()));
    this.#isUp = Array.from({ length: nodes }, () => true);
    this.#inFlight = new Uint32Array(nodes);
    this.#up = nodes;
  }

  setUp(node: number, isUp: boolean): void {
    this.#isUp[node] = isUp;
    this.#up = this.#isUp.filter(Boolean).length;
  }

  /** The request is in flight until it is `finished`. */
  choose(index: number): number {
    const node = this.#options.balance === 'random' ? this.#anyNode() : this.#nodeOf(index);
    this.#inFlight[node]! += 1;
    this.#inFlightTotal += 1;
    return node;
  }

  finished(node: number, requests: number): void {
    this.#inFlight[node]! -= requests;
    this.#inFlightTotal -= requests;
  }

  #anyNode(): number {
    const { nodes, random } = this.#options;
    for (;;) {
      const node = Math.floor(random() * nodes);
      if (this.#isUp[node]) return node;
    }
  }

  #nodeOf(index: number): number {
    const { balance, balanceFactor } = this.#options;
    const share = ((this.#inFlightTotal + 1) * balanceFactor) / 100 / this.#up;
    const most = balance === 'bounded' ? Math.max(1, Math.ceil(share)) : Infinity;
    for (let place = this.#places[index]!; ; place = (place + 1) % this.#ring.length) {
      const node = this.#ring[place]!;
      if (this.#isUp[node] && this.#inFlight[node]! < most) return node;
    }
  }
}
