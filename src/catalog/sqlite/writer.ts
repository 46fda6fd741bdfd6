/**
 * One database's writer: runs named operations in groups and looks after the file between groups
 * (checkpoints, purges, a short WAL). Synchronous; `writer-thread.ts` gives it a thread.
 */
import { statSync } from 'node:fs';
import { assertInvariant } from '../../errors.ts';
import { toOperatingError } from './connection.ts';
import type { Connection } from './connection.ts';
import type { GroupCommit, Outcome } from './group-commit.ts';
import type { ThreadRequest } from './thread-protocol.ts';

/** What purges rows in the background; `usage.db` has nothing of the kind. */
export interface Purge {
  isPending(): boolean;
  step(): boolean;
}

export interface WriterOptions {
  readonly connection: Connection;
  readonly groupCommit: GroupCommit;
  readonly operations: Readonly<Record<string, (input: never) => unknown>>;
  readonly purge?: Purge;
}

/** Frames (pages) in the WAL after which it is copied into the database: SQLite's own default. */
const walFramesMax = 1000;
/** Truncating the WAL gives up soon when a reader is in the way: it is tried again later. */
const truncateBusyTimeoutMs = 50;

export class Writer {
  readonly #options: WriterOptions;
  readonly #busyTimeoutMs: number;

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#busyTimeoutMs = options.connection.pragma('busy_timeout', { simple: true }) as number;
  }

  /** Commits the operations as one group. */
  runGroup(requests: readonly ThreadRequest[]): readonly Outcome[] {
    const { groupCommit, operations } = this.#options;
    return groupCommit.run(
      requests.map(({ operation, input }) => () => {
        const run = operations[operation];
        assertInvariant(run !== undefined, `the writer knows no ${operation}`);
        return run(input as never);
      }),
    );
  }

  /** Copies a grown WAL into the database; readers are never waited for. */
  checkpoint(): void {
    const { connection } = this.#options;
    const { log, checkpointed } = checkpointResult(connection, 'NOOP');
    if (log - checkpointed >= walFramesMax) checkpointResult(connection, 'PASSIVE');
  }

  /** Purges one batch of deleted rows; `true` while there is more. Throws when the commit fails. */
  purgeStep(): boolean {
    const { groupCommit, purge } = this.#options;
    if (purge === undefined || !purge.isPending()) return false;
    const [outcome] = groupCommit.run([() => purge.step()]);
    if (outcome !== undefined && !outcome.ok) throw outcome.error;
    this.checkpoint();
    return true;
  }

  /**
   * Empties the WAL file: overwritten and deleted rows linger there until then. `false` when a reader
   * was in the way.
   */
  truncateWal(): boolean {
    const { connection } = this.#options;
    if (walBytes(connection) === 0) return true;
    connection.pragma(`busy_timeout = ${truncateBusyTimeoutMs}`);
    try {
      return checkpointResult(connection, 'TRUNCATE').busy === 0;
    } catch (error) {
      throw toOperatingError(error);
    } finally {
      connection.pragma(`busy_timeout = ${this.#busyTimeoutMs}`);
    }
  }
}

interface CheckpointResult {
  readonly busy: number;
  readonly log: number;
  readonly checkpointed: number;
}

function checkpointResult(connection: Connection, mode: 'NOOP' | 'PASSIVE' | 'TRUNCATE'): CheckpointResult {
  const [row] = connection.pragma(`wal_checkpoint(${mode})`) as CheckpointResult[];
  assertInvariant(row !== undefined, 'a checkpoint returns one row');
  return row;
}

function walBytes(connection: Connection): number {
  return statSync(`${connection.name}-wal`, { throwIfNoEntry: false })?.size ?? 0;
}
