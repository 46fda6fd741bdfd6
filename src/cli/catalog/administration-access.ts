/** Where administrative commands work: at a service's admin API, where an address is given, or on the catalog of this machine. */
import type { Config } from '../../app/config.ts';
import type { OnWait } from '../client.ts';
import type { Administration } from '../../service/administration.ts';

export interface AdministrationChoice {
  /** The address of an admin API. */
  readonly url: string | undefined;
  readonly key: string | undefined;
  readonly onWait: OnWait | undefined;
  /** Parses the environment of this machine. */
  readonly config: () => Config;
}

/** Opens it for the time of `work`. `create`: a new data directory gets a catalog. */
export async function withAdministration<T>(
  { url, key, onWait, config }: AdministrationChoice,
  work: (administration: Administration) => Promise<T>,
  { create = false }: { readonly create?: boolean } = {},
): Promise<T> {
  if (url !== undefined) {
    const { remoteAdministration } = await import('./remote-administration.ts');
    return work(remoteAdministration(url, key, onWait));
  }
  const { withCatalog } = await import('./catalog-access.ts');
  return withCatalog(config(), ({ administration }) => work(administration), { create });
}
