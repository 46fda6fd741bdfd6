/**
 * Decides which texts run next. It owns all queued texts. It is synchronous and reads no clock.
 *
 * A *job* is one query, or one document request that makes its chunks lazily. A *batch* is a set of entries (texts) of one kind and
 * one model whose padded cost, longest x count, fits a budget of tokens.
 *
 * - Queries come before documents, in batches of their own. Each kind has its own places at the workers, which ensure that neither
 *   starves (`queryBurstMax` in session-worker.ts).
 * - The tenant that was served the fewest tokens gives the anchor of a batch: its oldest entry (start-time fair queueing over
 *   tokens; Goyal et al., SIGCOMM 1996). A tenant that returns starts level with the others.
 * - While documents of several tenants want to run, batches of documents are smaller (`sharedBatchTokens`), and no worker gets one
 *   ahead of time. A tenant none of whose documents run may take the worker for small batches. So it never waits for the whole
 *   run of a long batch of another tenant, which nothing interrupts.
 * - Entries of similar length fill the batch, as far as that costs less than batches of their own. They come from a bounded
 *   look-ahead, which takes the anchor's tenant first and older jobs before younger ones, so that jobs end one after another.
 * - The last batches of a queue are smaller, so that no worker is idle while another still runs a full one (guided
 *   self-scheduling; Polychronopoulos and Kuck, IEEE Transactions on Computers C-36, 1987).
 * - Jobs whose caller has gone or whose deadline has passed are dropped before they run, and counted.
 * - Admission is bounded in tokens and requests, and refuses at once. When nothing waits, a request of any size is admitted.
 */
import { assertInvariant } from '../../errors.ts';
import type { Sequence } from '../model/colbert-rules.ts';
import type { BatchKind, BatchOutput, BatchPlace } from '../inference/session-protocol.ts';

export interface Entry {
  readonly sequence: Sequence;
  /** Position in the job. It comes back with the rows. */
  readonly position: number;
}

export interface EntryRun {
  /** `performance.now()` when its batch began to run. */
  readonly startedAt: number;
  /** The entry's share of the run time of its batch. */
  readonly runMs: number;
  readonly rowsMs: number;
}

export interface Job {
  readonly kind: BatchKind;
  readonly modelIndex: number;
  readonly tenantId: string;
  /** Milliseconds since the epoch. */
  readonly deadlineMs: number;
  /** The n-th entry that is not taken yet. Undefined when there is none, or when the client reads too slowly. */
  peek(offset: number): Entry | undefined;
  /** Removes entries that `peek` has returned. */
  take(entries: ReadonlySet<Entry>): void;
  /** Whether every entry was taken. */
  readonly exhausted: boolean;
  readonly cancelled: boolean;
  /** Work of the encoder itself, which the statistics do not count. */
  readonly isInternal: boolean;
  /** Called once, when the job is dropped before its entries have run. */
  drop(reason: 'cancelled' | 'expired'): void;
  /** Takes the rows of a taken entry. */
  deliver(entry: Entry, rows: BatchOutput, run: EntryRun): void;
  /** This taken entry cannot be run. Other entries of the job may. */
  refuse(entry: Entry, problem: Error): void;
  fail(error: Error): void;
}

export interface BatchPlan {
  readonly kind: BatchKind;
  readonly place: BatchPlace;
  readonly modelIndex: number;
  readonly entries: readonly { readonly job: Job; readonly entry: Entry }[];
  /** Positions of each text after padding. */
  readonly paddedLength: number;
  /** A short query, while nothing runs and nothing else waits. It may use idle cores. */
  readonly lone: boolean;
}

export interface SchedulerOptions {
  /** Padded tokens of a document batch and of a query batch. A longer text runs alone. */
  readonly documentBatchTokens: number;
  readonly queryBatchTokens: number;
  /** Padded tokens of a document batch while documents of several tenants want to run. */
  readonly sharedBatchTokens: number;
  /** Lengths are padded to a multiple of this. */
  readonly lengthStep: number;
  /** The fixed cost of a run, in padded tokens. So much padding is accepted instead of another batch. */
  readonly runTokens: number;
  /** Tokens of the look-ahead, in units of the budget. */
  readonly lookAheadBatches: number;
  readonly queuedTokensMax: number;
  readonly queuedRequestsMax: number;
}

/** The most texts of a look-ahead, so that choosing among them does not delay the thread. */
const lookAheadTextsMax = 2048;

/** The smallest batch for a worker, in units of the cost of a run. A smaller one would cost more than it saves. */
const shareRunsMin = 12;

/** The longest query that is lone. A longer one would keep all cores from a query that comes after it. */
const loneTokensMax = 128;

/** The tokens of a request in the queue. They grow while its texts are tokenised. */
export interface Reservation {
  /** Returns false when the queue is full. Then the request must end. */
  grow(tokens: number): boolean;
  shrink(tokens: number): void;
  release(): void;
}

interface Lane {
  readonly jobs: Set<Job>;
  /** Tokens served to each tenant since the lane was last empty. */
  readonly served: Map<string, number>;
  /** The tokens that a tenant starts with when it comes, or comes back. */
  floor: number;
}

interface QueuedText {
  readonly job: Job;
  readonly entry: Entry;
  readonly length: number;
}

export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #workers: number;
  readonly #lanes: Record<BatchKind, Lane> = {
    query: { jobs: new Set(), served: new Map(), floor: 0 },
    document: { jobs: new Set(), served: new Map(), floor: 0 },
  };
  /** The batches of documents that run, or are at a worker, with texts of each tenant. */
  readonly #running = new Map<string, number>();
  #queuedTokens = 0;
  #queuedRequests = 0;
  readonly #counts = { batches: 0, tokens: 0, paddedTokens: 0, rejected: 0, expired: 0, cancelled: 0 };

  /** `workers`: batches that run at the same time. */
  constructor(options: SchedulerOptions, workers: number) {
    this.#options = options;
    this.#workers = workers;
  }

  get queuedTokens(): number {
    return this.#queuedTokens;
  }

  statistics() {
    return { ...this.#counts, queuedTokens: this.#queuedTokens, queuedRequests: this.#queuedRequests };
  }

  budgetOf(kind: BatchKind): number {
    return kind === 'query' ? this.#options.queryBatchTokens : this.#options.documentBatchTokens;
  }

  /** Admits a request. Undefined when the queue is full. */
  reserve(): Reservation | undefined {
    if (this.#queuedRequests >= this.#options.queuedRequestsMax) {
      this.#counts.rejected++;
      return undefined;
    }
    this.#queuedRequests++;
    let own = 0;
    let released = false;
    return {
      grow: (tokens) => {
        assertInvariant(!released, 'a released reservation grows');
        const alone = this.#queuedTokens === own;
        if (!alone && this.#queuedTokens + tokens > this.#options.queuedTokensMax) {
          this.#counts.rejected++;
          return false;
        }
        own += tokens;
        this.#queuedTokens += tokens;
        return true;
      },
      shrink: (tokens) => {
        const freed = Math.min(own, tokens);
        own -= freed;
        this.#queuedTokens -= freed;
      },
      release: () => {
        if (released) return;
        released = true;
        this.#queuedTokens -= own;
        this.#queuedRequests--;
      },
    };
  }

  /** Counts a request that was refused for another reason than the bound. */
  noteRefusal(): void {
    this.#counts.rejected++;
  }

  add(job: Job): void {
    const lane = this.#lanes[job.kind];
    lane.jobs.add(job);
    lane.served.set(job.tenantId, Math.max(lane.floor, lane.served.get(job.tenantId) ?? 0));
  }

  /** Whether documents of a tenant wait while those of another one wait or run. */
  get isContended(): boolean {
    const waiting = new Set([...this.#lanes.document.jobs].map(({ tenantId }) => tenantId));
    return waiting.size > 0 && new Set([...waiting, ...this.#running.keys()]).size > 1;
  }

  /** Each batch that is sent to a worker has to begin and to end here. */
  began(plan: BatchPlan): void {
    for (const tenantId of tenantsOf(plan)) {
      this.#running.set(tenantId, (this.#running.get(tenantId) ?? 0) + 1);
    }
  }

  ended(plan: BatchPlan): void {
    for (const tenantId of tenantsOf(plan)) {
      const left = this.#running.get(tenantId)! - 1;
      if (left === 0) this.#running.delete(tenantId);
      else this.#running.set(tenantId, left);
    }
  }

  /**
   * The next batch. Undefined when none can run now. `room`: the most padded tokens of each place. `isIdle`: no batch runs.
   */
  next(nowMs: number, room: Readonly<Record<BatchPlace, number>>, isIdle = false): BatchPlan | undefined {
    this.#dropDead(nowMs);
    for (const place of ['query', 'document', 'small'] as const) {
      const plan = room[place] === 0 ? undefined : this.#plan(place, room[place], isIdle);
      if (plan === undefined) continue;
      this.#count(plan);
      return plan;
    }
    return undefined;
  }

  #dropDead(nowMs: number): void {
    for (const lane of Object.values(this.#lanes)) {
      for (const job of lane.jobs) {
        if (job.exhausted && !job.cancelled) {
          // Its last entries were refused.
          this.#remove(lane, job);
          continue;
        }
        if (!job.cancelled && job.deadlineMs > nowMs) continue;
        // A job whose deadline has passed is cancelled too, and counts as expired.
        const reason = job.deadlineMs > nowMs ? 'cancelled' : 'expired';
        if (!job.isInternal) this.#counts[reason]++;
        this.#remove(lane, job);
        job.drop(reason);
      }
    }
  }

  #plan(place: BatchPlace, room: number, isIdle: boolean): BatchPlan | undefined {
    const kind = place === 'query' ? 'query' : 'document';
    const lane = this.#lanes[kind];
    const jobs = [...lane.jobs].filter(({ tenantId }) => place !== 'small' || !this.#running.has(tenantId));
    const anchor = this.#anchor(lane, jobs, room);
    if (anchor === undefined) return undefined;
    const shared = kind === 'document' && this.isContended ? this.#options.sharedBatchTokens : Infinity;
    const budget = Math.min(room, this.budgetOf(kind), shared);
    // When only one text waits, there is nothing to choose.
    const alone = jobs.length === 1 && anchor.job.peek(1) === undefined;
    const isShortQuery = kind === 'query' && anchor.length <= loneTokensMax;
    const lone = isIdle && isShortQuery && alone && this.#lanes.document.jobs.size === 0;
    const chosen = alone ? [anchor] : this.#choose(this.#lookAhead(jobs, anchor, budget), anchor, budget);
    const taken = new Map<Job, Set<Entry>>();
    for (const { job, entry, length } of chosen) {
      const entries = taken.get(job) ?? new Set();
      taken.set(job, entries.add(entry));
      lane.served.set(job.tenantId, (lane.served.get(job.tenantId) ?? lane.floor) + length);
    }
    for (const [job, entries] of taken) {
      job.take(entries);
      if (job.exhausted) this.#remove(lane, job);
    }
    return {
      kind,
      place,
      modelIndex: anchor.job.modelIndex,
      entries: chosen,
      paddedLength: chosen.reduce((longest, { length }) => Math.max(longest, length), 0),
      lone,
    };
  }

  /** The oldest entry that fits into the room, of the tenant that was served least. */
  #anchor(lane: Lane, jobs: readonly Job[], room: number): QueuedText | undefined {
    let best: QueuedText | undefined;
    let bestServed = Infinity;
    for (const job of jobs) {
      const served = lane.served.get(job.tenantId)!;
      if (served >= bestServed) continue;
      const entry = job.peek(0);
      const text = entry === undefined ? undefined : this.#queuedText(job, entry);
      if (text === undefined || text.length > room) continue;
      best = text;
      bestServed = served;
    }
    if (best !== undefined) lane.floor = Math.max(lane.floor, bestServed);
    return best;
  }

  /**
   * The anchor and further entries of its model: first those of its tenant, then those of others. Older jobs come first, so that
   * requests end one after another and not all at their deadline.
   */
  #lookAhead(waiting: readonly Job[], anchor: QueuedText, budget: number): QueuedText[] {
    const texts: QueuedText[] = [anchor];
    const tokensMax = budget * this.#options.lookAheadBatches;
    let tokens = anchor.length;
    const jobs = waiting.filter((job) => job.modelIndex === anchor.job.modelIndex);
    const own = jobs.filter((job) => job.tenantId === anchor.job.tenantId);
    const others = jobs.filter((job) => job.tenantId !== anchor.job.tenantId);
    for (const job of [...own, ...others]) {
      for (let offset = 0; ; offset++) {
        if (tokens >= tokensMax || texts.length >= lookAheadTextsMax) return texts;
        const entry = job.peek(offset);
        if (entry === undefined) break;
        if (entry === anchor.entry) continue;
        const text = this.#queuedText(job, entry);
        texts.push(text);
        tokens += text.length;
      }
    }
    return texts;
  }

  /** The batch of the anchor. The last batches of a queue are smaller, so that the workers end at the same time. */
  #choose(texts: readonly QueuedText[], anchor: QueuedText, budget: number): QueuedText[] {
    const { runTokens } = this.#options;
    const waiting = texts.reduce((sum, { length }) => sum + length, 0);
    const share = this.#workers === 1 ? budget : Math.max(waiting / this.#workers, runTokens * shareRunsMin);
    return cheapestBatch(texts, anchor, { budget: Math.min(budget, share), runTokens });
  }

  #queuedText(job: Job, entry: Entry): QueuedText {
    const step = this.#options.lengthStep;
    return { job, entry, length: Math.ceil(entry.sequence.ids.length / step) * step };
  }

  #remove(lane: Lane, job: Job): void {
    lane.jobs.delete(job);
    if (lane.jobs.size > 0) return;
    lane.served.clear();
    lane.floor = 0;
  }

  #count(plan: BatchPlan): void {
    const asked = plan.entries.filter(({ job }) => !job.isInternal);
    if (asked.length === 0) return;
    this.#counts.batches++;
    this.#counts.paddedTokens += plan.paddedLength * asked.length;
    for (const { entry } of asked) this.#counts.tokens += entry.sequence.ids.length;
  }
}

/** The tenants of a batch of documents; none of another kind. */
function tenantsOf({ kind, entries }: BatchPlan): ReadonlySet<string> {
  return new Set(kind === 'document' ? entries.map(({ job }) => job.tenantId) : []);
}

/**
 * Cuts the texts, sorted by length, into the batches that cost least together, and returns the batch of the anchor. A batch costs
 * its padded tokens and the fixed cost of a run. The cheapest cut of the first n texts follows from the cheapest cuts of fewer
 * texts (dynamic programming).
 */
function cheapestBatch(
  texts: readonly QueuedText[],
  anchor: QueuedText,
  { budget, runTokens }: { readonly budget: number; readonly runTokens: number },
): QueuedText[] {
  // The sort is stable: of equal lengths the older stays in front.
  const sorted = texts.toSorted((a, b) => a.length - b.length);
  /** Entry n: the cost of the first n texts, and the beginning of their last batch. */
  const costs = new Float64Array(sorted.length + 1);
  const begins = new Uint32Array(sorted.length + 1);
  for (let end = 1; end <= sorted.length; end++) {
    const longest = sorted[end - 1]!.length;
    const countMax = Math.max(1, Math.floor(budget / longest));
    costs[end] = Infinity;
    for (let begin = end - 1; begin >= 0 && end - begin <= countMax; begin--) {
      const cost = costs[begin]! + longest * (end - begin) + runTokens;
      if (cost >= costs[end]!) continue;
      costs[end] = cost;
      begins[end] = begin;
    }
  }
  const at = sorted.indexOf(anchor);
  let end = sorted.length;
  while (begins[end]! > at) end = begins[end]!;
  return sorted.slice(begins[end], end);
}
