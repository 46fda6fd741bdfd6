/**
 * Clients of the battery. Each client writes documents that no other client writes, and sends one operation after the other to
 * any node. If the node of a write dies, the client waits until nothing that the node had begun can still happen. By then
 * an operation without an answer has happened, or it never will.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { Admissions } from '../checkers/admissions.ts';
import { History } from '../checkers/history.ts';
import { Ledger, type Counters } from '../checkers/ledger.ts';
import type { CallKind, CallOf, NodeAnswers, NodeAsks } from './node-calls.ts';
import { NodeGone, Refused, type LoadNode } from './load-node.ts';
import type { BatteryTenant } from './tenants.ts';

export interface LoadOptions {
  readonly nodes: readonly LoadNode[];
  /** The tenant whose documents are written and searched. */
  readonly writer: BatteryTenant;
  /** A tenant with few requests a minute, and one with few requests at a time; absent = limits are not tested. */
  readonly limited?: { readonly rated: BatteryTenant; readonly slotted: BatteryTenant };
  readonly random: () => number;
}

const clients = 8;
const documentsOfClient = 3;
const refusedPauseMs = 20;
/** Requests that are sent at once: searches of `rated`, and requests that hold a slot of `slotted`. */
const ratedAtOnce = 6;
const slottedAtOnce = 14;
const holdMs = 20;
const queryTokens = 2;
const newLifeMsMax = 120_000;

export interface KeptCommits {
  loses(lose: () => Promise<void>): Promise<void>;
}

export class Load {
  readonly history = new History();
  readonly ledger = new Ledger();
  readonly admissions = new Admissions();
  readonly #options: LoadOptions;
  readonly #ended = new AbortController();
  /** Answered calls by their kind. */
  readonly answered: Record<CallKind, number> = { upsert: 0, remove: 0, search: 0, hold: 0 };
  /** Calls that were refused because a limit was reached. */
  limited = 0;
  /** Calls that were refused with 503, because of a fault. */
  refused = 0;
  /** Calls that were never answered. */
  lost = 0;

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  get operations(): number {
    return Object.values(this.answered).reduce((sum, count) => sum + count, 0);
  }

  /** Runs the clients until this many operations are answered, or `stop` is called. Rejects at the first violation. */
  async run(operations = Infinity): Promise<void> {
    const all = Array.from({ length: clients }, async (_client, own) => {
      while (!this.#ended.signal.aborted && this.operations < operations) await this.#operate(own);
    });
    try {
      await Promise.all(all);
    } finally {
      this.stop();
      await Promise.allSettled(all);
    }
  }

  stop(): void {
    this.#ended.abort();
  }

  /** Commits from now on may be lost, once `loses` of the result is called. */
  keepCommits(): KeptCommits {
    const moment = this.history.now();
    const loseUsage = this.ledger.keep();
    return {
      loses: async (lose) => {
        this.history.loses();
        await lose();
        this.history.lostSince(moment);
        loseUsage();
      },
    };
  }

  /** Searches on every node and checks the answer by the history. */
  async lookEverywhere(): Promise<void> {
    for (const node of this.#options.nodes) await this.lookAt(node);
  }

  async lookAt(node: LoadNode): Promise<void> {
    const { search } = this.answered;
    // The first search may fail by its deadline, if the node must fetch everything.
    for (let attempt = 0; attempt < 100 && this.answered.search === search; attempt += 1)
      await this.#search(node);
    if (this.answered.search === search) throw new Error('a node does not answer in calm');
  }

  async #operate(own: number): Promise<void> {
    const chance = this.#options.random();
    const { limited } = this.#options;
    if (limited !== undefined && chance < 0.002) await this.#probeRate(limited.rated);
    else if (limited !== undefined && chance < 0.004) await this.#probeSlots(limited.slotted);
    else if (chance < 0.17) await this.#upsert(own);
    else if (chance < 0.27) await this.#remove(own);
    else await this.#search(this.#anyNode(own));
  }

  async #upsert(own: number): Promise<void> {
    const random = this.#options.random;
    const first = Math.floor(random() * documentsOfClient);
    const places = random() < 0.8 ? [first] : [first, (first + 1) % documentsOfClient];
    const writes = places.map((place) => {
      const docId = `d${own}-${place}`;
      const { place: version, answered } = this.history.begin(docId, true);
      const text = Array.from({ length: 8 }, (_word, at) => `w${(version + at) % 50}`).join(' ');
      return { document: { docId, version, text }, answered };
    });
    const used = { documentUpserts: writes.length, inputTokens: 8 * writes.length };
    const documents = writes.map(({ document }) => document);
    await this.#write(own, 'upsert', { documents }, used, () => writes.forEach(({ answered }) => answered()));
  }

  async #remove(own: number): Promise<void> {
    const docId = `d${own}-${Math.floor(this.#options.random() * documentsOfClient)}`;
    const { answered } = this.history.begin(docId, false);
    await this.#write(own, 'remove', { docId }, {}, answered);
  }

  async #write<Kind extends 'upsert' | 'remove'>(
    own: number,
    kind: Kind,
    asks: NodeAsks[Kind],
    used: Partial<Counters>,
    onAnswer: () => void,
  ): Promise<void> {
    const node = this.#anyNode(own);
    const { life } = node;
    let isLost = false;
    const value = await this.#ask(node, this.#options.writer, kind, asks, used, () => (isLost = true));
    if (value !== undefined) onAnswer();
    else if (isLost) await this.#untilNewLife(node, life);
  }

  async #search(node: LoadNode): Promise<void> {
    const beganAt = this.history.now();
    const used = { searches: 1, inputTokens: queryTokens };
    const found = await this.#ask(node, this.#options.writer, 'search', {}, used);
    if (found === undefined) return;
    const versions = new Map(found);
    if (versions.size < found.length)
      throw new Error(`a search found a document twice: ${JSON.stringify(found)}`);
    this.history.check(beganAt, versions);
  }

  async #probeRate(tenant: BatteryTenant): Promise<void> {
    await this.#atOnce(ratedAtOnce, async (node) => {
      const from = performance.now();
      const found = await this.#ask(node, tenant, 'search', {});
      if (found !== undefined) this.admissions.admitted({ from, to: performance.now() });
    });
  }

  async #probeSlots(tenant: BatteryTenant): Promise<void> {
    await this.#atOnce(slottedAtOnce, async (node) => {
      const held = await this.#ask(node, tenant, 'hold', { ms: holdMs });
      if (held === undefined) return;
      // Times of the machine's steady clock, which this process reads too.
      const offset = performance.now() - Number(process.hrtime.bigint()) / 1e6;
      this.admissions.held({ from: held[0] + offset, to: held[1] + offset });
    });
  }

  async #atOnce(count: number, work: (node: LoadNode) => Promise<void>): Promise<void> {
    await Promise.all(Array.from({ length: count }, () => work(this.#anyNode(clients))));
  }

  /** Calls a node. `undefined` = the call was refused or lost. Throws an error that no client may ever see. */
  async #ask<Kind extends CallKind>(
    node: LoadNode,
    { apiKey, indexId }: BatteryTenant,
    kind: Kind,
    asks: NodeAsks[Kind],
    used?: Partial<Counters>,
    onLost?: () => void,
  ): Promise<NodeAnswers[Kind] | undefined> {
    const counted = used && this.ledger.begin(used);
    try {
      const call: CallOf<Kind> = { kind, apiKey, indexId, ...asks };
      const value = await node.call(call);
      counted?.();
      this.answered[kind] += 1;
      return value;
    } catch (error) {
      if (error instanceof NodeGone) {
        this.lost += 1;
        onLost?.();
      } else if (!(error instanceof Refused)) throw error;
      else if (error.code === 'service_unavailable') this.refused += 1;
      // While Redis is away, a node spreads its share of a limit evenly. So it may refuse the second of two requests in a
      // millisecond, whatever the tenant's limit is.
      else if (/^(rate|concurrency)_limit_exceeded$/.test(error.code)) this.limited += 1;
      else throw error;
      await pause(refusedPauseMs);
      return undefined;
    }
  }

  /** Waits until a node has started again. By then nothing that its last process had begun can still happen. */
  async #untilNewLife(node: LoadNode, life: number): Promise<void> {
    for (const endsAt = performance.now() + newLifeMsMax; node.life === life;) {
      if (this.#ended.signal.aborted) return;
      if (performance.now() > endsAt) throw new Error('a node dropped a request and lives');
      await pause(refusedPauseMs);
    }
  }

  /** A node that is up. Only two clients choose stalled nodes as well, because otherwise all clients would wait there. */
  #anyNode(own: number): LoadNode {
    const { nodes, random } = this.#options;
    const likely = nodes.filter(({ isUp, isStalled }) => isUp && (own < 2 || !isStalled));
    const from = likely.length > 0 ? likely : nodes;
    return from[Math.floor(random() * from.length)]!;
  }
}
