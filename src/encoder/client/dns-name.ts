/**
 * Encoders behind one DNS name, such as a headless Service of Kubernetes: each address of the name is an encoder. The name is
 * looked up again every few seconds, so encoders may come and go while the service runs. After a lookup that fails, the addresses
 * of the one before stay.
 */
import { lookup } from 'node:dns/promises';
import { setTimeout as pause } from 'node:timers/promises';

export interface DnsName {
  readonly host: string;
  readonly port: string;
}

export interface HostAddress {
  readonly address: string;
  readonly family: number;
}

export type LookUp = (host: string) => Promise<readonly HostAddress[]>;

/** The parts of `dns:///host:port`; undefined for another address. */
export function dnsNameOf(address: string): DnsName | undefined {
  const [, host, port] = /^dns:\/\/\/([^/:]+):(\d+)$/.exec(address) ?? [];
  return host === undefined || port === undefined ? undefined : { host, port };
}

/** As the system resolves it, with its search domains. */
export const systemLookUp: LookUp = (host) => lookup(host, { all: true });

export interface Following {
  readonly lookUp: LookUp;
  readonly intervalMs: number;
  readonly signal: AbortSignal;
  /** `host:port` of each encoder. Called after each lookup. */
  readonly onAddresses: (addresses: readonly string[]) => void;
  readonly onFailure: (reason: string) => void;
}

/** Looks a name up until the signal aborts. */
export async function followDnsName({ host, port }: DnsName, following: Following): Promise<void> {
  const { lookUp, intervalMs, signal, onAddresses, onFailure } = following;
  while (!signal.aborted) {
    try {
      const found = await lookUp(host);
      if (signal.aborted) return;
      // A host with addresses of both families is one encoder.
      const ofOneFamily = found.filter(({ family }) => family === found[0]?.family);
      onAddresses([...new Set(ofOneFamily.map(({ address, family }) => at(address, family, port)))]);
    } catch (error) {
      if (!signal.aborted) onFailure((error as Error).message);
    }
    await pause(intervalMs, undefined, { signal, ref: false }).catch(() => undefined);
  }
}

function at(address: string, family: number, port: string): string {
  return family === 6 ? `[${address}]:${port}` : `${address}:${port}`;
}
