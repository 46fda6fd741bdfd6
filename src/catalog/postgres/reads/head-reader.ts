/**
 * Reads heads of indexes. Every search begins with one. Calls that come while a query is on its way share the next query, over
 * all indexes. A query never answers a call that came after it was sent, because the head may have changed in between.
 */
import type { IndexHead } from '../../../contracts/index-state.ts';
import { type Database, statements } from '../database.ts';
import type { Epochs } from './epochs.ts';

type Waiting = Map<string, PromiseWithResolvers<IndexHead | undefined>>;

const sql = statements({
  readHeads: 'SELECT id, generation, layout, epoch FROM epoch_1() AS epoch, indexes WHERE id = ANY($1)',
});

export class HeadReader {
  readonly #database: Database;
  readonly #epochs: Epochs;
  #waiting: Waiting = new Map();
  #isReading = false;

  constructor(database: Database, epochs: Epochs) {
    this.#database = database;
    this.#epochs = epochs;
  }

  read(indexId: string): Promise<IndexHead | undefined> {
    const known = this.#waiting.get(indexId);
    if (known !== undefined) return known.promise;
    const waiting = Promise.withResolvers<IndexHead | undefined>();
    this.#waiting.set(indexId, waiting);
    if (!this.#isReading) void this.#readAll();
    return waiting.promise;
  }

  /** Never rejects. */
  async #readAll(): Promise<void> {
    this.#isReading = true;
    while (this.#waiting.size > 0) {
      const waiting = this.#waiting;
      this.#waiting = new Map();
      await this.#answer(waiting);
    }
    this.#isReading = false;
  }

  async #answer(waiting: Waiting): Promise<void> {
    try {
      const rows = await this.#database.rows<IndexHead & { id: string }>(sql.readHeads, [
        [...waiting.keys()],
      ]);
      const heads = new Map(rows.map(({ id, ...head }) => [id, head]));
      if (rows[0] !== undefined) this.#epochs.note(rows[0].epoch);
      for (const [id, { resolve }] of waiting) resolve(heads.get(id));
    } catch (error) {
      for (const { reject } of waiting.values()) reject(error);
    }
  }
}
