/** The admin API of this process, if the configuration asks for it. */
import type { AddressInfo } from 'node:net';
import { createAdminServer, type AdminServerOptions } from '../http/admin/server.ts';
import { OperatorKeys } from '../http/admin/operator-keys.ts';
import { administration } from '../service/administration.ts';
import type { Backend } from './backend.ts';
import { ConfigError, readConfigured, type Config } from './config.ts';
import { listenAt } from './ports.ts';

export type AdminServer = Awaited<ReturnType<typeof createAdminServer>>;

export async function adminServer(
  config: Config,
  { catalog, keyPepper }: Pick<Backend, 'catalog' | 'keyPepper'>,
  listener: Omit<AdminServerOptions, 'administrationOf' | 'noteRefusedLogin' | 'operators'>,
): Promise<AdminServer | undefined> {
  if (config.MAXSIMD_ADMIN_PORT === -1) return undefined;
  return createAdminServer({
    ...listener,
    operators: await operatorKeys(config.MAXSIMD_ADMIN_KEY_FILE),
    administrationOf: (actor) =>
      // The service finds and removes files that nothing refers to.
      administration({ catalog, actor, keyPepper, purge: () => Promise.resolve(false) }),
    noteRefusedLogin: (detail) => catalog.noteRefusedLogin(detail),
  });
}

async function operatorKeys(file: string): Promise<OperatorKeys> {
  const text = await readConfigured('MAXSIMD_ADMIN_KEY_FILE', file);
  try {
    return new OperatorKeys(text.toString());
  } catch (error) {
    throw new ConfigError(`MAXSIMD_ADMIN_KEY_FILE: ${file}: ${(error as Error).message}`);
  }
}

export async function listenForOperators(server: AdminServer | undefined, config: Config): Promise<void> {
  if (server === undefined) return;
  const { MAXSIMD_ADMIN_HOST: host, MAXSIMD_ADMIN_PORT: port } = config;
  await listenAt({ name: 'MAXSIMD_ADMIN', host, port }, () => server.listen({ host, port }));
  const address = server.server.address() as AddressInfo;
  if (port === 0) process.stderr.write(`maxsimd: admin API on port ${address.port}\n`);
}
