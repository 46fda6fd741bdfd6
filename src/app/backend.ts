/** The storage of a process: a data directory that it owns, or services that nodes share (`cluster.ts`). */
import path from 'node:path';
import type { Catalog } from '../catalog/contract.ts';
import { lockDataDirectory } from '../catalog/data-directory.ts';
import { openCatalog } from '../catalog/sqlite/open-catalog.ts';
import { openLocalBlobStore } from '../index/storage/local-blob-store.ts';
import type { Logger } from '../observation/logging.ts';
import type { RunningService, ServiceDeps } from '../service/create-service.ts';
import { MemoryLimiter } from '../service/limits/memory-limiter.ts';
import { steadyNowMs } from '../service/limits/steady-clock.ts';
import type { Config } from './config.ts';
import type { ModelReference } from './models/default-model.ts';
import type { Encoders } from './encoders.ts';

export interface Backend extends Pick<ServiceDeps, 'keyPepper' | 'limiter' | 'blobs'> {
  readonly catalog: Catalog;
  /** The name of this process among the nodes of a cluster. */
  readonly node?: string;
  /** The models that each other live node serves. */
  othersOffer(): readonly (readonly ModelReference[])[];
  /** From now on the reports of this process to others describe this service and these encoders. */
  serves(service: Pick<RunningService, 'statistics'>, encoders: Pick<Encoders, 'offered'>): void;
  /** Tenants, by month, whose usage waits in memory to be written. */
  usageWaiting(): number;
  /** This process takes no more requests. */
  leave(): Promise<void>;
  /** Idempotent. Call it after the service has ended. */
  close(): Promise<void>;
}

/** Locks the data directory, which exists, and opens its catalog and segments. */
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
    othersOffer: () => [],
    serves: () => undefined,
    usageWaiting: () => catalog.usageWaiting(),
    leave: () => Promise.resolve(),
    close: () => resources.disposeAsync(),
  };
}
