/** An admin API over a catalog of its own. */
import { randomBytes } from 'node:crypto';
import { openCatalog, type SqliteCatalog } from '../../../src/catalog/sqlite/open-catalog.ts';
import { OperatorKeys } from '../../../src/http/admin/operator-keys.ts';
import { createAdminServer } from '../../../src/http/admin/server.ts';
import type { ConsolePage } from '../../../src/http/console/page.ts';
import { createRequestObserver } from '../../../src/http/observation.ts';
import { createLogger } from '../../../src/observation/logging.ts';
import { createMetrics } from '../../../src/observation/metrics.ts';
import { administration, type Administration } from '../../../src/service/administration.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';

export interface AdminStage extends AsyncDisposable {
  readonly app: Awaited<ReturnType<typeof createAdminServer>>;
  readonly catalog: SqliteCatalog;
  readonly local: Administration;
  readonly operatorKey: string;
  readonly logText: () => string;
}

/** Memory that the engine has for each tenant. */
export const stageMemoryBytes = 4_096;

export async function openAdminStage(options: { readonly page?: ConsolePage } = {}): Promise<AdminStage> {
  const catalog = await openCatalog({ directory: await newDirectory(), actor: 'server' });
  const purge = () => Promise.resolve(false);
  const local = administration({ catalog, keyPepper: catalog.keyPepper(), purge });
  const operatorKey = randomBytes(32).toString('hex');
  const lines: string[] = [];
  const logger = createLogger({ level: 'debug', destination: { write: (line) => void lines.push(line) } });
  const app = await createAdminServer({
    administrationOf: (actor) => administration({ catalog, actor, keyPepper: catalog.keyPepper(), purge }),
    memoryBytesOf: () => stageMemoryBytes,
    noteRefusedLogin: (detail) => catalog.noteRefusedLogin(detail),
    operators: new OperatorKeys(`${randomBytes(32).toString('hex')}\n${operatorKey}\n`),
    observer: createRequestObserver(logger, createMetrics()),
    ...options,
  });
  return {
    app,
    catalog,
    local,
    operatorKey,
    logText: () => lines.join(''),
    async [Symbol.asyncDispose]() {
      await app.close();
      await catalog.close();
    },
  };
}
