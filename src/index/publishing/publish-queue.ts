/**
 * Makes commits visible in the order of their generations, whatever the order in which they are submitted: a search must
 * never see a commit without the earlier ones. When a commit cannot be applied, all who wait are rejected, and
 * nothing is applied after it.
 */
import { assertInvariant } from '../../errors.ts';
import type { RecordLocation } from '../../contracts/index-state.ts';

export interface BornVersion extends RecordLocation {
  readonly versionId: number;
}

/** The versions that one committed transaction began and ended. */
export interface Commit {
  readonly generation: number;
  readonly born: readonly BornVersion[];
  readonly died: readonly RecordLocation[];
}

interface WaitingCommit {
  readonly commit: Commit;
  readonly done: PromiseWithResolvers<void>;
}

export class PublishQueue {
  readonly #apply: (commit: Commit) => void;
  readonly #waiting = new Map<number, WaitingCommit>();
  #published: number;
  #failure: { readonly error: unknown } | undefined;
  /** A commit was applied in part, or could not be applied. */
  #broken = false;

  /** `generation`: the last one that is visible already. */
  constructor(generation: number, apply: (commit: Commit) => void) {
    this.#published = generation;
    this.#apply = apply;
  }

  get published(): number {
    return this.#published;
  }

  /** Resolves when the commit and all before it are visible. */
  submit(commit: Commit): Promise<void> {
    if (commit.generation <= this.#published) return Promise.resolve();
    const known = this.#waiting.get(commit.generation);
    if (known !== undefined) return known.done.promise;
    const done = Promise.withResolvers<void>();
    this.#waiting.set(commit.generation, { commit, done });
    this.#advance();
    if (this.#failure !== undefined) this.fail(this.#failure.error);
    return done.promise;
  }

  /** Rejects all who wait, and all who would have to wait from now on. */
  fail(error: unknown): void {
    this.#failure ??= { error };
    for (const { done } of this.#waiting.values()) done.reject(error);
    this.#waiting.clear();
  }

  #advance(): void {
    while (!this.#broken) {
      const next = this.#waiting.get(this.#published + 1);
      if (next === undefined) return;
      try {
        this.#apply(next.commit);
      } catch (error) {
        this.#broken = true;
        return this.fail(error);
      }
      this.#waiting.delete(next.commit.generation);
      this.#published += 1;
      assertInvariant(this.#published === next.commit.generation, 'generations are published in order');
      next.done.resolve();
    }
  }
}
