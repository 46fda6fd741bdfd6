/** Whether requests can be served now. Probes come from anywhere, so they share one look a second. */
import type { Catalog } from '../catalog/contract.ts';
import type { Encoder } from '../encoder/protocol/contract.ts';
import type { BlobStore } from '../index/storage/blob-store.ts';
import type { Readiness } from './contract.ts';

export interface ReadinessOptions {
  readonly catalog: Catalog;
  readonly encoder: Encoder;
  readonly blobs: BlobStore;
  readonly draining: () => boolean;
  readonly nowMs: () => number;
}

/** Below this, appends are about to fail. */
const freeBytesMin = 64 * 1024 * 1024;
const lookAgeMsMax = 1_000;

type Checks = Readiness['checks'];

export class ReadinessProbe {
  readonly #options: ReadinessOptions;
  #look: { readonly atMs: number; readonly checks: Promise<Pick<Checks, 'catalog' | 'disk'>> } | undefined;

  constructor(options: ReadinessOptions) {
    this.#options = options;
  }

  async readiness(): Promise<Readiness> {
    const { encoder, draining, nowMs } = this.#options;
    if (draining()) return notReady({ draining: 'shutting down' });
    if (this.#look === undefined || nowMs() - this.#look.atMs >= lookAgeMsMax) {
      this.#look = { atMs: nowMs(), checks: this.#lookNow() };
    }
    const looked = await this.#look.checks;
    const checks: Checks = {
      ...looked,
      encoder: encoder.ready() ? 'ok' : 'no encoder serves',
      draining: draining() ? 'shutting down' : 'ok',
    };
    return { ready: Object.values(checks).every((state) => state === 'ok'), checks };
  }

  async #lookNow(): Promise<Pick<Checks, 'catalog' | 'disk'>> {
    const { catalog, blobs } = this.#options;
    const [catalogState, diskState] = await Promise.all([
      catalog.ping().then(
        () => 'ok',
        () => 'cannot be written',
      ),
      blobs.freeBytes().then(
        (bytes) => (bytes >= freeBytesMin ? 'ok' : 'no space left'),
        () => 'cannot be read',
      ),
    ]);
    return { catalog: catalogState, disk: diskState };
  }
}

function notReady(failed: Partial<Checks>): Readiness {
  return { ready: false, checks: { catalog: 'ok', encoder: 'ok', disk: 'ok', draining: 'ok', ...failed } };
}
