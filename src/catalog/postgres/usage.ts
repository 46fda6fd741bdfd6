/**
 * Usage. Events that no commit carries are written in flights: events that come while a flight is on its way share the next
 * one. A flight is one transaction. Each event is added by itself in it, so that one that exceeds its allowance is refused
 * alone. The events are sorted by tenant, so that the flights of several nodes cannot deadlock.
 */
import type { Catalog } from '../contract.ts';
import type { UsageEvent } from '../../contracts/document-commits.ts';
import { ServiceError } from '../../errors.ts';
import { assertUsage } from '../checks.ts';
import { sumOfUsage, usageColumns, usageValues, wasUsed, type UsagePart } from '../rows.ts';
import { type Database, statements } from './database.ts';

interface Waiting {
  readonly event: UsageEvent;
  readonly inputTokensMax: bigint | undefined;
  readonly done: PromiseWithResolvers<void>;
}

const flightMax = 1_000;
/** So many events wait only while the database is away. Further ones are refused. */
const waitingMax = 10_000;

const sql = statements({
  addUsages: 'SELECT add_usages_1($1, $2, $3, $4, $5, $6, $7, $8, $9) AS added',
  usageTotals: `SELECT ${usageColumns}, (SELECT documents_stored FROM tenants WHERE id = $1) AS documents
    FROM (SELECT) AS one LEFT JOIN usage_months ON tenant_id = $1 AND month = $2`,
  usageDays: `SELECT day, ${usageColumns} FROM usage_days WHERE tenant_id = $1 AND day BETWEEN $2 AND $3 AND ${wasUsed} ORDER BY day`,
  rateWindows: `SELECT tenant_id AS "tenantId", rate_window AS packed FROM usage_months
    WHERE month >= $1 AND rate_window IS NOT NULL`,
});

/** `scans`: for lists. */
export function usageCatalog(database: Database, scans: Database) {
  return {
    recordUsage: new UsageWriter(database).record,
    async usageTotals(tenantId, month) {
      const rows = await database.rows<UsagePart & { documents: number | null }>(sql.usageTotals, [
        tenantId,
        month,
      ]);
      return { ...sumOfUsage(rows), documents: rows[0]?.documents ?? 0 };
    },
    async usageDays(tenantId, from, to) {
      const rows = await scans.rows<UsagePart & { day: string }>(sql.usageDays, [tenantId, from, to]);
      return rows.map((row) => ({ day: row.day, ...sumOfUsage([row]) }));
    },
    rateWindows: (month) => database.rows<{ tenantId: string; packed: Buffer }>(sql.rateWindows, [month]),
  } satisfies Partial<Catalog>;
}

class UsageWriter {
  readonly #database: Database;
  #waiting: Waiting[] = [];
  #isWriting = false;

  constructor(database: Database) {
    this.#database = database;
  }

  readonly record: Catalog['recordUsage'] = async (event, inputTokensMax) => {
    assertUsage(event);
    if (this.#waiting.length >= waitingMax) {
      throw new ServiceError('service_unavailable', 'usage cannot be recorded', { retryAfterSeconds: 1 });
    }
    const done = Promise.withResolvers<void>();
    this.#waiting.push({ event, inputTokensMax, done });
    if (!this.#isWriting) void this.#writeAll();
    await done.promise;
  };

  /** Never rejects. */
  async #writeAll(): Promise<void> {
    this.#isWriting = true;
    while (this.#waiting.length > 0) await this.#write(this.#waiting.splice(0, flightMax));
    this.#isWriting = false;
  }

  async #write(flight: readonly Waiting[]): Promise<void> {
    const inOrder = flight.toSorted((a, b) => (a.event.tenantId < b.event.tenantId ? -1 : 1));
    const values = inOrder.map(({ event, inputTokensMax }) => [
      event.tenantId,
      ...usageValues(event),
      inputTokensMax ?? null,
    ]);
    try {
      const [row] = await this.#database.rows<{ added: readonly boolean[] }>(
        sql.addUsages,
        Array.from({ length: 9 }, (_value, column) => values.map((event) => event[column])),
      );
      for (const [place, { done }] of inOrder.entries()) {
        if (row?.added[place] === true) done.resolve();
        else done.reject(exceeded());
      }
    } catch (error) {
      for (const { done } of inOrder) done.reject(error);
    }
  }
}

/** The caller adds when the month ends. */
function exceeded(): ServiceError {
  return new ServiceError(
    'usage_limit_exceeded',
    'the request exceeds the monthly allowance of input tokens',
  );
}
