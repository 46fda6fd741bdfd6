/**
 * The writer of `catalog.db`. It commits operations in groups. Between groups it runs checkpoints, purges deleted rows and
 * keeps the write-ahead log short. Synchronous; `writer-thread.ts` gives it a thread.
 */
import { statSync } from 'node:fs';
import { assertInvariant } from '../../../errors.ts';
import type { SpaceReserve } from '../../space-reserve.ts';
import type { CatalogOperations } from '../operations/catalog-operations.ts';
import { checkpoint, isOutOfSpace, toOperatingError } from '../connection.ts';
import type { Connection } from '../connection.ts';
import type { GroupCommit, Outcome, Work } from './group-commit.ts';
import type { Operations } from './thread-client.ts';
import type { ThreadRequest } from './thread-protocol.ts';

/** Purges rows in the background (`purge-operations.ts`). */
export interface Purge {
  isPending(): boolean;
  step(): boolean;
}

export interface WriterOptions {
  readonly connection: Connection;
  readonly groupCommit: GroupCommit;
  readonly operations: Operations;
  readonly reserve: Pick<SpaceReserve, 'release'>;
  readonly purge: Purge;
}

/** A WAL with so many frames (pages) is copied into the database. SQLite's own default. */
const walFramesMax = 1000;
/** The time that a truncation of the WAL waits for readers. It is tried again later. */
const truncateBusyTimeoutMs = 50;

/** Operations that free space, or that must work on a full disk too. They may use up the reserve. */
const freeingOperations: ReadonlySet<string> = new Set<keyof CatalogOperations>([
  'commitDelete',
  'commitDeleteVersions',
  'deleteIndex',
  'deleteTenant',
  'endSession',
  'forgetDeadVersions',
  'purgeStep',
  'revokeKey',
  'setTenantSuspended',
]);

export class Writer {
  readonly #options: WriterOptions;
  readonly #busyTimeoutMs: number;

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#busyTimeoutMs = options.connection.pragma('busy_timeout', { simple: true }) as number;
  }

  /** Commits the operations as one group. */
  runGroup(requests: readonly ThreadRequest[]): readonly Outcome[] {
    const { operations } = this.#options;
    const works = requests.map(({ operation, input }) => () => {
      const run = operations[operation];
      assertInvariant(run !== undefined, `the writer knows no ${operation}`);
      return run(...input);
    });
    return this.#run(works, (place) => freeingOperations.has(requests[place]?.operation ?? ''));
  }

  #run(works: readonly Work[], frees: (place: number) => boolean): readonly Outcome[] {
    const { groupCommit, reserve } = this.#options;
    const outcomes = groupCommit.run(works);
    const starved = [...outcomes.keys()].filter((place) => frees(place) && isStarved(outcomes[place]));
    if (starved.length === 0 || !reserve.release()) return outcomes;
    const again = groupCommit.run(starved.flatMap((place) => works[place] ?? []));
    return outcomes.map((outcome, place) => again[starved.indexOf(place)] ?? outcome);
  }

  /** Copies a long WAL into the database, without waiting for readers. */
  checkpoint(): void {
    const { connection } = this.#options;
    const { log, checkpointed } = checkpoint(connection, 'NOOP');
    if (log - checkpointed >= walFramesMax) checkpoint(connection, 'PASSIVE');
  }

  /** Purges one batch of deleted rows; `true` while there is more. Throws when the commit fails. */
  purgeStep(): boolean {
    const { purge } = this.#options;
    if (!purge.isPending()) return false;
    const [outcome] = this.#run([() => purge.step()], () => true);
    if (outcome !== undefined && !outcome.ok) throw outcome.error;
    this.checkpoint();
    return true;
  }

  /** Empties the WAL file, which still holds overwritten and deleted rows. `false` when a reader was in the way. */
  truncateWal(): boolean {
    const { connection } = this.#options;
    if (walBytes(connection) === 0) return true;
    connection.pragma(`busy_timeout = ${truncateBusyTimeoutMs}`);
    try {
      return checkpoint(connection, 'TRUNCATE').busy === 0;
    } catch (error) {
      throw toOperatingError(error);
    } finally {
      connection.pragma(`busy_timeout = ${this.#busyTimeoutMs}`);
    }
  }
}

function isStarved(outcome: Outcome | undefined): boolean {
  return outcome !== undefined && !outcome.ok && isOutOfSpace(outcome.error);
}

function walBytes(connection: Connection): number {
  return statSync(`${connection.name}-wal`, { throwIfNoEntry: false })?.size ?? 0;
}
