/** Whether requests can be served now. Probes come from anywhere, so they share one look a second. */
import type { Catalog } from '../catalog/contract.ts';
import { whyAway } from '../away-reasons.ts';
import type { Encoder } from '../encoder/protocol/contract.ts';
import type { Readiness } from './contract.ts';
import type { ServiceStorage } from './indexes/storage.ts';
import type { Limiter } from './limits/limiter.ts';

export interface ReadinessOptions {
  readonly catalog: Catalog;
  readonly encoder: Encoder;
  readonly storage: Pick<ServiceStorage, 'freeBytes' | 'ping'>;
  readonly limiter: Pick<Limiter, 'isAway'>;
  readonly draining: () => boolean;
  readonly nowMs: () => number;
}

/** Below this, appends are about to fail. */
const freeBytesMin = 64 * 1024 * 1024;
const lookAgeMsMax = 1_000;

const degraded = 'degraded: ';
const sharesHold = `${degraded}every node admits its share of the limits`;

type Checks = Readiness['checks'];
type Looked = Pick<Checks, 'catalog' | 'disk' | 'objects'>;

export class ReadinessProbe {
  readonly #options: ReadinessOptions;
  #look: { readonly atMs: number; readonly checks: Promise<Looked> } | undefined;

  constructor(options: ReadinessOptions) {
    this.#options = options;
  }

  async readiness(): Promise<Readiness> {
    const { encoder, limiter, draining, nowMs } = this.#options;
    if (draining()) return notReady({ draining: 'shutting down' });
    if (this.#look === undefined || nowMs() - this.#look.atMs >= lookAgeMsMax) {
      this.#look = { atMs: nowMs(), checks: this.#lookNow() };
    }
    const looked = await this.#look.checks;
    const checks: Checks = {
      ...looked,
      ...(limiter.isAway === undefined ? {} : { limiter: limiter.isAway ? sharesHold : 'ok' }),
      encoder: encoder.ready() ? 'ok' : 'no encoder serves',
      draining: draining() ? 'shutting down' : 'ok',
    };
    return { ready: Object.values(checks).every(isServing), checks };
  }

  async #lookNow(): Promise<Looked> {
    const { catalog, storage } = this.#options;
    const [catalogState, diskState, objectsState] = await Promise.all([
      catalog.ping().then(
        () => 'ok',
        (error: unknown) => whyAway(error) ?? 'cannot be written',
      ),
      storage.freeBytes().then(
        (bytes) => (bytes >= freeBytesMin ? 'ok' : 'no space left'),
        () => 'cannot be read',
      ),
      storage.ping?.().then(
        () => 'ok',
        (error: unknown) => whyAway(error) ?? 'cannot be reached',
      ),
    ]);
    return {
      catalog: catalogState,
      disk: diskState,
      ...(objectsState === undefined ? {} : { objects: objectsState }),
    };
  }
}

/** Whether a part in this state is no reason to send requests elsewhere. */
export function isServing(state: string): boolean {
  return state === 'ok' || state.startsWith(degraded);
}

function notReady(failed: Partial<Checks>): Readiness {
  return { ready: false, checks: { catalog: 'ok', encoder: 'ok', disk: 'ok', draining: 'ok', ...failed } };
}
