/**
 * Usage that no commit carries. Events that come while a flight is on its way share the next one: one transaction, and
 * in it each event by itself, so that one that exceeds its allowance is refused alone. In the order of tenants: flights
 * of several nodes do not deadlock.
 */
import type { Catalog } from '../contract.ts';
import type { UsageEvent } from '../../document-commits.ts';
import { ServiceError } from '../../errors.ts';
import { assertUsage } from './commits.ts';
import type { Database } from './database.ts';
import { usageValues } from './rows.ts';

interface Waiting {
  readonly event: UsageEvent;
  readonly inputTokensMax: bigint | undefined;
  readonly done: PromiseWithResolvers<void>;
}

const flightMax = 1_000;
/** Waiting events beyond this are refused: the database is away. */
const waitingMax = 10_000;

const add = {
  name: 'add-usages',
  text: 'SELECT add_usages_1($1, $2, $3, $4, $5, $6, $7, $8, $9) AS added',
};

export class UsageWriter {
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
        add,
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

/** When the month ends is the caller's to say. */
function exceeded(): ServiceError {
  return new ServiceError('usage_limit_exceeded', 'the allowance of input tokens does not hold this request');
}
