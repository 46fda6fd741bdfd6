/**
 * What a process keeps its data with: a data directory that it owns, or what it shares with other nodes
 * (`cluster.ts`).
 */
import path from 'node:path';
import type { Catalog } from '../catalog/contract.ts';
import { lockDataDirectory } from '../catalog/data-directory.ts';
import { openCatalog } from '../catalog/sqlite/open-catalog.ts';
import { openLocalBlobStore } from '../index/storage/local-blob-store.ts';
import type { Logger } from '../logging.ts';
import type { RunningService, ServiceDeps } from '../service/create-service.ts';
import { MemoryLimiter } from '../service/limits/memory-limiter.ts';
import { steadyNowMs } from '../service/limits/steady-clock.ts';
import type { Config } from './config.ts';

export interface Backend extends Pick<ServiceDeps, 'keyPepper' | 'limiter' | 'blobs'> {
  readonly catalog: Catalog;
  /** What this process tells others of itself is of this service from now on. */
  serves(service: Pick<RunningService, 'statistics'>): void;
  /** Tenants whose usage waits in memory to be written, by month. */
  usageWaiting(): number;
  /** This process takes no more requests. */
  leave(): Promise<void>;
  /** Idempotent; after the service has ended. */
  close(): Promise<void>;
}

/** Locks the data directory, which exists, and opens what lies in it. */
export async function openDataDirectory(config: Config, logger: Logger): Promise<Backend> {
  const directory = config.MAXSIMD_DATA_DIR;
  await using opening = new AsyncDisposableStack();
  opening.adopt(lockDataDirectory(directory), (held) => held.release());
  const catalog = opening.adopt(
    await openCatalog({
      directory,
      owned: true,
      actor: 'server',
      onBackgroundFailure: (error) => logger.error({ err: error }, 'catalog upkeep failed'),
      onNotice: (notice, cause) => logger.warn({ err: cause }, notice),
    }),
    (opened) => opened.close(),
  );
  const blobs = await openLocalBlobStore(path.join(directory, 'segments'));
  const limiter = await MemoryLimiter.restore(catalog, steadyNowMs());
  const resources = opening.move();
  return {
    catalog,
    keyPepper: catalog.keyPepper(),
    limiter,
    blobs,
    serves: () => undefined,
    usageWaiting: () => catalog.usageWaiting(),
    leave: () => Promise.resolve(),
    close: () => resources.disposeAsync(),
  };
}
