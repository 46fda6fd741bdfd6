/**
 * Documents that expire. From its time on a document is in no answer: lists and counts leave it out in the catalog, and an
 * answer that met one is made again after `end`. Upkeep ends all others within minutes. To end a document does what deleting
 * it does, so its data are erased within a day, and it counts for the allowance until then.
 */
import type {
  Catalog,
  CommitDeleteVersionsResult,
  ExpiredIndex,
  StoredDocument,
} from '../../catalog/contract.ts';
import { SharedRuns } from '../../shared-runs.ts';
import { monthOf } from '../calendar-month.ts';
import type { Indexes } from './indexes.ts';

/** Documents that one transaction ends. Other commits wait for it. */
const endedAtOnce = 1_000;

export interface ExpiryDeps {
  readonly catalog: Catalog;
  readonly indexes: Indexes;
  readonly nowMs: () => number;
}

export class Expiry {
  readonly #deps: ExpiryDeps;
  readonly #runs = new SharedRuns();

  constructor(deps: ExpiryDeps) {
    this.#deps = deps;
  }

  /** Whether the document is in no answer any more. */
  hasExpired({ expiresAtMs }: Pick<StoredDocument, 'expiresAtMs'>): boolean {
    return expiresAtMs !== undefined && expiresAtMs <= this.#deps.nowMs();
  }

  /** Ends the documents of an index that have expired. Callers share the work. */
  end(tenantId: string, indexId: string): Promise<void> {
    return this.#runs.run(() => this.#end(tenantId, indexId), indexId);
  }

  /** The indexes that hold expired documents. */
  due(): Promise<readonly ExpiredIndex[]> {
    return this.#deps.catalog.expiredIndexes(this.#deps.nowMs());
  }

  async #end(tenantId: string, indexId: string): Promise<void> {
    const { catalog, indexes, nowMs } = this.#deps;
    for (;;) {
      const versionIds = await catalog.expiredVersions(indexId, nowMs(), endedAtOnce);
      if (versionIds.length === 0) return;
      const usage = { tenantId, month: monthOf(nowMs()) };
      await indexes.commitDelete<CommitDeleteVersionsResult>(indexId, async () => {
        const result = await catalog.commitDeleteVersions({ tenantId, indexId, versionIds, usage });
        return result.outcome === 'committed' ? { result, commit: result } : { result };
      });
    }
  }
}
