/** Keeps a turn to merge for as long as it is used. */
import type { MergeTurn } from '../catalog.ts';

/** How long a turn lasts. It is renewed three times within that. */
export const mergeTurnMs = 30_000;

export class HeldTurn {
  readonly turn: MergeTurn;
  readonly #timer: NodeJS.Timeout;
  #lost = false;

  constructor(turn: MergeTurn) {
    this.turn = turn;
    this.#timer = setInterval(() => void this.#renew(), mergeTurnMs / 3).unref();
  }

  get isLost(): boolean {
    return this.#lost;
  }

  async end(): Promise<void> {
    clearInterval(this.#timer);
    if (!this.#lost) await this.turn.release();
  }

  /** When the catalog cannot be asked the turn may still hold: the swap decides. */
  async #renew(): Promise<void> {
    const kept = await this.turn.renew().catch(() => true);
    if (kept) return;
    this.#lost = true;
    clearInterval(this.#timer);
  }
}
