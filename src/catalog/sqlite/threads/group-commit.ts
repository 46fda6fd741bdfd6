/**
 * Group commit: waiting operations share one transaction, and so one fsync. Each runs in a savepoint of its own. One that
 * fails is rolled back alone, and the others commit.
 *
 * A COMMIT that throws (a full or failing disk) may or may not have happened. So every transaction writes its number into
 * this writer's row of `commit_markers`, and after a failed COMMIT the row is read over a new connection. If that fails too,
 * the writer refuses all further work, and the next start of the process reads the truth.
 */
import type { Connection } from '../connection.ts';
import { isBusy, toOperatingError } from '../connection.ts';
import { ServiceError } from '../../../errors.ts';

export type Outcome =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: unknown };

export type Work = () => unknown;

export interface GroupCommitOptions {
  readonly connection: Connection;
  /** Unique among all writers that ever opened the database. */
  readonly writer: string;
  /** Reads the number of this writer's last transaction in the file, over a new connection. */
  readonly readSequence: () => number | undefined;
  /** Runs at the end of every transaction. The function that it returns runs once the transaction is committed. */
  readonly beforeCommit?: () => () => void;
  /** Replaceable so that tests can lose the answer of a COMMIT. */
  readonly commit?: () => void;
}

/** One day. No COMMIT takes that long, and each transaction of a live writer renews its row. */
const markerAgeMaxMs = 86_400_000;

export class GroupCommit {
  readonly #connection: Connection;
  readonly #options: GroupCommitOptions;
  readonly #statements;
  #sequence = 0;
  #broken: ServiceError | undefined;

  constructor(options: GroupCommitOptions) {
    const { connection } = options;
    this.#connection = connection;
    this.#options = options;
    this.#statements = {
      begin: connection.prepare('BEGIN IMMEDIATE'),
      commit: connection.prepare('COMMIT'),
      rollback: connection.prepare('ROLLBACK'),
      savepoint: connection.prepare('SAVEPOINT operation'),
      release: connection.prepare('RELEASE operation'),
      rollbackTo: connection.prepare('ROLLBACK TO operation'),
      mark: connection.prepare(
        `INSERT INTO commit_markers (writer, sequence, at_ms) VALUES (?, ?, ?)
         ON CONFLICT (writer) DO UPDATE SET sequence = excluded.sequence, at_ms = excluded.at_ms`,
      ),
    };
  }

  /** Runs all works. The outcomes are in the same order and final: committed, or without any trace. */
  run(works: readonly Work[]): readonly Outcome[] {
    if (this.#broken !== undefined) return works.map(() => failed(this.#broken));
    const attempt = this.#attempt(works);
    if ('outcomes' in attempt) return attempt.outcomes;
    if (works.length === 1 || attempt.cause === 'not_begun') return works.map(() => failed(attempt.error));
    // One operation may have cost the whole transaction, for example on a full disk. So each is run again alone.
    return works.flatMap((work) => this.run([work]));
  }

  #attempt(
    works: readonly Work[],
  ):
    | { readonly outcomes: readonly Outcome[] }
    | { readonly error: unknown; readonly cause: 'not_begun' | 'lost' } {
    try {
      this.#statements.begin.run();
    } catch (error) {
      return { error: toOperatingError(error), cause: 'not_begun' };
    }
    const outcomes: Outcome[] = [];
    const sequence = this.#sequence + 1;
    this.#sequence = sequence;
    let committing = false;
    let afterCommit: (() => void) | undefined;
    try {
      for (const work of works) outcomes.push(this.#runAlone(work));
      this.#statements.mark.run(this.#options.writer, sequence, Date.now());
      afterCommit = this.#options.beforeCommit?.();
      committing = true;
      if (this.#options.commit === undefined) this.#statements.commit.run();
      else this.#options.commit();
    } catch (error) {
      if (this.#connection.inTransaction) this.#rollBack();
      if (!committing || !this.#isCommitted(sequence, error)) {
        return { error: toOperatingError(error), cause: 'lost' };
      }
    }
    afterCommit?.();
    return { outcomes };
  }

  #runAlone(work: Work): Outcome {
    this.#statements.savepoint.run();
    try {
      const value = work();
      this.#statements.release.run();
      return { ok: true, value };
    } catch (error) {
      // Some errors (SQLITE_FULL among them) make SQLite roll back everything.
      if (!this.#connection.inTransaction) throw error;
      this.#statements.rollbackTo.run();
      this.#statements.release.run();
      return failed(toOperatingError(error));
    }
  }

  #rollBack(): void {
    try {
      this.#statements.rollback.run();
    } catch (error) {
      // Nothing was committed. But the connection is in an unknown state, and no later transaction on it can be trusted.
      this.#break(error);
    }
  }

  #isCommitted(sequence: number, error: unknown): boolean {
    // COMMIT fails with BUSY before it has written anything.
    if (isBusy(error)) return false;
    try {
      return this.#options.readSequence() === sequence;
    } catch (readError) {
      this.#break(new AggregateError([error, readError], 'outcome of a COMMIT unknown'));
      return false;
    }
  }

  #break(cause: unknown): void {
    this.#broken = new ServiceError(
      'service_unavailable',
      'the catalog stopped writing after a failed commit; restart the service',
      { retryAfterSeconds: 5, cause },
    );
  }
}

/** Removes the rows of writers that ended long ago. Must run inside a transaction. */
export function forgetOldMarkers(connection: Connection): void {
  connection.prepare('DELETE FROM commit_markers WHERE at_ms < ?').run(Date.now() - markerAgeMaxMs);
}

/** Returns a function that reads the marker of a writer over a new connection. */
export function sequenceReader(open: () => Connection, writer: string): () => number | undefined {
  return () => {
    const connection = open();
    try {
      return connection
        .prepare<[string], number>('SELECT sequence FROM commit_markers WHERE writer = ?')
        .pluck()
        .get(writer);
    } finally {
      connection.close();
    }
  };
}

function failed(error: unknown): Outcome {
  return { ok: false, error };
}
