/**
 * The writer of `catalog.db`: runs named operations in groups and looks after the file between groups
 * (checkpoints, purges, a short WAL). Synchronous; `writer-thread.ts` gives it a thread.
 */
import { statSync } from 'node:fs';
import { assertInvariant } from '../../../errors.ts';
import type { SpaceReserve } from '../../space-reserve.ts';
import type { CatalogOperations } from '../operations/catalog-operations.ts';
import { checkpoint, isOutOfSpace, toOperatingError } from '../connection.ts';
import type { Connection } from '../connection.ts';
import type { GroupCommit, Outcome, Work } from './group-commit.ts';
import type { ThreadRequest } from './thread-protocol.ts';

/** What purges rows in the background. */
export interface Purge {
  isPending(): boolean;
  step(): boolean;
}

export interface WriterOptions {
  readonly connection: Connection;
  readonly groupCommit: GroupCommit;
  readonly operations: Readonly<Record<string, (input: never) => unknown>>;
  readonly reserve: Pick<SpaceReserve, 'release'>;
  readonly purge: Purge;
}

/** Frames (pages) in the WAL after which it is copied into the database: SQLite's own default. */
const walFramesMax = 1000;
/** Truncating the WAL gives up soon when a reader is in the way: it is tried again later. */
const truncateBusyTimeoutMs = 50;

/** Operations that free space, or that must work whatever the disk is like. */
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

  /** Commits the operations as one group; those that free space may use the reserve for it. */
  runGroup(requests: readonly ThreadRequest[]): readonly Outcome[] {
    const { operations } = this.#options;
    const works = requests.map(({ operation, input }) => () => {
      const run = operations[operation];
      assertInvariant(run !== undefined, `the writer knows no ${operation}`);
      return run(input as never);
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

  /** Copies a grown WAL into the database; readers are never waited for. */
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

  /**
   * Empties the WAL file: overwritten and deleted rows linger there until then. `false` when a reader
   * was in the way.
   */
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
