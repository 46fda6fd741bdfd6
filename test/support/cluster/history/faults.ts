/**
 * Injects faults while clients work, one after the other and chosen at random. Several nodes must survive each of them. A fault
 * is mended before its promise resolves.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { CutMoment } from '../../network/cutting-proxy.ts';
import type { Faults as HttpFaults } from '../../network/faulty-http.ts';
import type { Battery, BatteryNode } from './battery.ts';
import type { Span } from '../checkers/admissions.ts';
import { copyOf, fallBack, type FallBack } from '../lost-commits.ts';
import { killAndStart } from './kill-node.ts';
import type { KeptCommits } from './load.ts';

export interface FaultOptions {
  readonly random: () => number;
  /** The faults to choose from; absent = all. */
  readonly kinds?: readonly FaultKind[];
  readonly pauseMs: number;
  readonly redisEveryMs: number;
  readonly redisWasAway: (span: Span) => void;
  /** Commits from now on may be lost, once `loses` of the result is called. */
  readonly keepCommits: () => KeptCommits;
}

/** A node that merges is stopped for longer than its lease, which is 1.5 s. */
const asleepMs = 2_500;
const asleepWithinMs = 4_000;
/** Longer than the client of the object store waits for an answer. */
const longHangMs = 11_000;

type Inject = (node: BatteryNode) => Promise<boolean>;

export type FaultKind = keyof Faults['kinds'];

/** Faults after which the catalog is that of an earlier moment. */
export const losesCommits = [
  'PostgreSQL fails over to a replica that is behind',
  'PostgreSQL restored to an older copy',
] as const satisfies readonly FaultKind[];

export type FaultCounts = Partial<Record<FaultKind, number>>;

export class Faults {
  readonly #battery: Battery;
  readonly #options: FaultOptions;
  readonly counts: FaultCounts = {};
  #redisAt = 0;

  /** Injects a fault of each kind. Resolves to whether the fault took effect. */
  readonly kinds = {
    'node killed': (node) => this.#kill(node, false),
    'node killed, disk lost': (node) => this.#kill(node, true),
    'node stopped': (node) => this.#stop(node),
    'merger asleep past its lease': (node) => this.#sleep(node),
    'PostgreSQL restarted at once': async () => {
      await this.#battery.servers.postgres.stop('SIGQUIT');
      await pause(this.#briefly() / 3);
      await this.#battery.servers.postgres.start();
      return true;
    },
    'PostgreSQL fails over to a replica that is behind': () => this.#loseCommits('promoted replica'),
    'PostgreSQL restored to an older copy': () => this.#loseCommits('older copy'),
    'connection cut in a commit': (node) =>
      this.#cut(node, () =>
        node.toPostgres.cutAtRequest('commit-', this.#pick<CutMoment>(['half', 'sent', 0, 1, 40])),
      ),
    'connections cut': (node) =>
      this.#cut(node, () => node.toPostgres.cutOnceAfter(Math.floor(2_000 * this.#options.random()))),
    'objects: 500': (node) => this.#failObjects(node, { status: 500 }),
    'objects: no answer': (node) => {
      const isLong = this.#options.random() < 0.2;
      return this.#failObjects(node, { delayMs: isLong ? longHangMs : this.#briefly() });
    },
    'objects: cut in a body': (node) =>
      this.#failObjects(node, { passBytes: 50, ending: 'cut', cutRequests: true }),
    'Redis killed': () =>
      this.#loseRedis(async (redis) => {
        await redis.stop('SIGKILL');
        await pause(this.#briefly());
        await redis.start();
      }),
    'Redis stopped': () =>
      this.#loseRedis(async (redis) => {
        redis.kill('SIGSTOP');
        await pause(this.#briefly());
        redis.kill('SIGCONT');
      }),
  } satisfies Record<string, Inject>;

  constructor(battery: Battery, options: FaultOptions) {
    this.#battery = battery;
    this.#options = options;
  }

  async run(signal: AbortSignal): Promise<void> {
    const all = this.#options.kinds ?? (Object.keys(this.kinds) as FaultKind[]);
    while (!signal.aborted) {
      await pause(this.#options.pauseMs * 2 * this.#options.random());
      const kind = this.#pick(all);
      if (kind.startsWith('Redis')) {
        if (performance.now() < this.#redisAt) continue;
        this.#redisAt = performance.now() + this.#options.redisEveryMs;
      }
      const inject: Inject = this.kinds[kind];
      if (await inject(this.#pick(this.#battery.nodes))) this.counts[kind] = (this.counts[kind] ?? 0) + 1;
    }
  }

  #pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.#options.random() * from.length)]!;
  }

  #briefly(): number {
    return 100 + 1_400 * this.#options.random();
  }

  async #stop({ process: node }: BatteryNode): Promise<true> {
    node.isStalled = true;
    node.signal('SIGSTOP');
    await pause(this.#briefly());
    node.signal('SIGCONT');
    node.isStalled = false;
    return true;
  }

  async #cut({ toPostgres: proxy }: BatteryNode, plan: () => void): Promise<boolean> {
    const cuts = proxy.cuts();
    plan();
    await pause(this.#briefly());
    proxy.stopCutting();
    return proxy.cuts() > cuts;
  }

  async #kill({ process: node }: BatteryNode, losesDisk: boolean): Promise<true> {
    await killAndStart(this.#battery.url, node, losesDisk);
    return true;
  }

  async #sleep({ process: node }: BatteryNode): Promise<boolean> {
    const asleep = await Promise.race([node.sleepAtSwap().then(() => true), pause(asleepWithinMs, false)]);
    if (!asleep) {
      node.staysAwake();
      return false;
    }
    node.isStalled = true;
    await pause(asleepMs);
    node.signal('SIGCONT');
    node.isStalled = false;
    return true;
  }

  async #failObjects(node: BatteryNode, faults: HttpFaults): Promise<boolean> {
    const { requests } = node.toObjects;
    node.process.isStalled = faults.delayMs !== undefined;
    node.toObjects.faults = faults;
    await pause(this.#briefly());
    node.toObjects.faults = {};
    node.process.isStalled = false;
    return node.toObjects.requests > requests;
  }

  async #loseCommits(way: FallBack): Promise<true> {
    const { postgres } = this.#battery.servers;
    const kept = this.#options.keepCommits();
    const copy = await copyOf(postgres);
    await pause(this.#briefly());
    await kept.loses(() => fallBack(postgres, copy, way));
    return true;
  }

  async #loseRedis(lose: (redis: Battery['servers']['redis']) => Promise<void>): Promise<true> {
    const from = performance.now();
    await lose(this.#battery.servers.redis);
    // Clients come back within a second or two.
    this.#options.redisWasAway({ from, to: performance.now() + 5_000 });
    return true;
  }
}
