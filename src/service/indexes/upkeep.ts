/**
 * Background work on all indexes, one thing at a time. Documents that have expired are ended. Open indexes forget dead versions
 * and give space back. The files of erased indexes go. Every few hours a sweep looks at every index, used or not and with or
 * without its model, because deleted data must be physically gone within 24 hours.
 *
 * Nodes share the sweep. Each takes up some indexes that are due and opens those that hold waste.
 */
import type { SweptIndex } from '../../catalog/cluster-contract.ts';
import type { Catalog, IndexRow } from '../../catalog/contract.ts';
import { ServiceError } from '../../errors.ts';
import type { OpenIndex } from '../../index/contract.ts';
import { SharedRuns } from '../../shared-runs.ts';
import type { Expiry } from './expiry.ts';
import type { Indexes } from './indexes.ts';

export interface UpkeepDeps {
  readonly catalog: Catalog;
  readonly indexes: Indexes;
  readonly expiry: Pick<Expiry, 'due' | 'end'>;
  readonly onError: (job: string, error: unknown) => void;
  /** Claims shared indexes that are due; absent where this process looks at every stored index. */
  readonly claimSweep?: () => Promise<readonly SweptIndex[]>;
  readonly intervalMs?: number;
}

const intervalMsDefault = 60_000;
/** Two sweeps come within the age at which waste is due (12 hours), so that it is gone within 24 hours with time to spare. */
const sweepIntervalMs = 6 * 3_600_000;

export class Upkeep {
  readonly #deps: UpkeepDeps;
  readonly #timer: NodeJS.Timeout;
  readonly #rounds = new SharedRuns();
  #sweptAt = Number.NEGATIVE_INFINITY;
  #stopped = false;

  constructor(deps: UpkeepDeps) {
    this.#deps = deps;
    this.#timer = setInterval(() => void this.run(), deps.intervalMs ?? intervalMsDefault);
    this.#timer.unref();
  }

  /** Makes a round. Callers share one. Never rejects. */
  run(): Promise<void> {
    return this.#rounds.run(() => this.#round());
  }

  /** Begins no new round. The one under way ends after its current index. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#timer);
    await this.#rounds.settled();
  }

  async #round(): Promise<void> {
    const { indexes } = this.#deps;
    await this.#attempt('removal of files', () => indexes.removeUnknown());
    await this.#attempt('expiry', () => this.#endExpired());
    const { claimSweep } = this.#deps;
    const now = performance.now();
    if (claimSweep !== undefined) {
      await this.#attempt('sweep', async () => {
        for (const swept of await claimSweep()) await this.#sweepShared(swept);
      });
    } else if (now - this.#sweptAt >= sweepIntervalMs) {
      this.#sweptAt = now;
      await this.#attempt('sweep', () => this.#sweep());
      return;
    }
    for (const indexId of indexes.openIds()) {
      if (this.#stopped) return;
      await this.#attempt('maintenance', async () => {
        await indexes.useIfOpen(indexId, (index) => this.#maintainOpen(index));
      });
    }
  }

  async #endExpired(): Promise<void> {
    const { expiry } = this.#deps;
    for (const { tenantId, id } of await expiry.due()) {
      if (this.#stopped) return;
      await this.#attempt('expiry', () => expiry.end(tenantId, id));
    }
  }

  async #sweep(): Promise<void> {
    const { catalog, indexes } = this.#deps;
    const stored = new Set(await indexes.storedIds());
    for (const tenant of await catalog.listTenants()) {
      for (const { id, status } of await catalog.listIndexes(tenant.id)) {
        if (this.#stopped) return;
        if (!stored.has(id) || status === 'error') continue;
        await this.#attempt('maintenance', () => this.#maintain({ id, tenantId: tenant.id }));
      }
    }
  }

  async #sweepShared({ indexId, tenantId, forgettable, isWasteful }: SweptIndex): Promise<void> {
    if (this.#stopped) return;
    if (forgettable !== undefined) {
      const { catalog } = this.#deps;
      await this.#attempt('sweep', async () => void (await catalog.forgetDeadVersions(indexId, forgettable)));
    }
    if (isWasteful) await this.#attempt('maintenance', () => this.#maintain({ id: indexId, tenantId }));
  }

  async #maintain(index: Pick<IndexRow, 'id' | 'tenantId'>): Promise<void> {
    try {
      await this.#deps.indexes.useWithoutModel(index, (open) => this.#maintainOpen(open));
    } catch (error) {
      // The index was erased meanwhile.
      if (!(error instanceof ServiceError && error.code === 'not_found')) throw error;
    }
  }

  /** The service may have begun to drain while the index was opened. */
  async #maintainOpen(index: OpenIndex): Promise<void> {
    if (!this.#stopped) await index.maintain();
  }

  async #attempt(job: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!this.#stopped) this.#deps.onError(job, error);
    }
  }
}
