/** Says whether requests can be served now. Anybody may ask, so all who ask within a second share one look. */
import type { Catalog } from '../catalog/contract.ts';
import { whyAway } from '../away-reasons.ts';
import type { EncoderPool } from '../encoder/protocol/contract.ts';
import type { Readiness } from './contract.ts';
import type { IndexStore } from '../index/contract.ts';
import type { Limiter } from './limits/limiter.ts';

export interface ReadinessDeps {
  readonly catalog: Catalog;
  readonly encoders: EncoderPool;
  readonly store: Pick<IndexStore, 'freeBytes' | 'ping'>;
  readonly limiter: Pick<Limiter, 'isAway' | 'ping'>;
  readonly draining: () => boolean;
  readonly nowMs: () => number;
}

/** With less free space appends are about to fail. */
const freeMibMin = 64;
const lookAgeMsMax = 1_000;

const degraded = 'degraded: ';
const sharesHold = `${degraded}every node admits its share of the limits`;

type Checks = Readiness['checks'];
type Looked = Pick<Checks, 'catalog' | 'disk' | 'objects'>;

export class ReadinessProbe {
  readonly #deps: ReadinessDeps;
  #look: { readonly atMs: number; readonly checks: Promise<Looked> } | undefined;

  constructor(deps: ReadinessDeps) {
    this.#deps = deps;
  }

  async readiness(): Promise<Readiness> {
    const { encoders, limiter, draining, nowMs } = this.#deps;
    if (draining()) return notReady({ draining: 'shutting down' });
    if (this.#look === undefined || nowMs() - this.#look.atMs >= lookAgeMsMax) {
      this.#look = { atMs: nowMs(), checks: this.#lookNow() };
    }
    const looked = await this.#look.checks;
    const checks: Checks = {
      ...looked,
      ...(limiter.isAway === undefined ? {} : { limiter: limiter.isAway ? sharesHold : 'ok' }),
      encoder: encoders.ready() ? 'ok' : 'no encoder serves',
      draining: draining() ? 'shutting down' : 'ok',
    };
    return { ready: Object.values(checks).every(isServing), checks };
  }

  async #lookNow(): Promise<Looked> {
    const { catalog, store, limiter } = this.#deps;
    const stateOf = (ping: Promise<void>, otherwise: string): Promise<string> =>
      ping.then(
        () => 'ok',
        (error: unknown) => whyAway(error) ?? otherwise,
      );
    const [catalogState, disk, objects] = await Promise.all([
      stateOf(catalog.ping(), 'cannot be written'),
      store.freeBytes().then(
        (bytes) => (bytes >= freeMibMin * 2 ** 20 ? 'ok' : `less than ${freeMibMin} MiB free`),
        () => 'cannot be read',
      ),
      store.ping && stateOf(store.ping(), 'cannot be reached'),
      limiter.ping?.(),
    ]);
    return { catalog: catalogState, disk, ...(objects === undefined ? {} : { objects }) };
  }
}

/** Whether a part in this state still serves. */
export function isServing(state: string): boolean {
  return state === 'ok' || state.startsWith(degraded);
}

function notReady(failed: Partial<Checks>): Readiness {
  return { ready: false, checks: { catalog: 'ok', encoder: 'ok', disk: 'ok', draining: 'ok', ...failed } };
}
