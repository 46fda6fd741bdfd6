/**
 * Which addresses NO_PROXY leaves out. It is read as curl reads it: names and their subdomains, addresses, and networks such as
 * `10.0.0.0/8` and `fd00::/8`; `*` is all. Names are not resolved. Beside this, other programs know brackets around IPv6, a port
 * behind `:`, `*.` in front of a name, and spaces for commas. The key would go to the proxy if they were not read here. The
 * Python client has the same in `proxies.py`, and `test/clients/cases/no-proxy.json` has the cases for both.
 */
import { BlockList, isIP } from 'node:net';

const ipv6 = /^\[(?<host>[^\]]+)\](?<bits>\/\d+)?(?::(?<port>\d+))?$/;
const named = /^(?<host>[^:]+):(?<port>\d+)$/;

/** For a proxy, these names mean its own machine. */
export function isThisMachine({ hostname }: URL): boolean {
  return /^(localhost|127\.[\d.]+|\[::1\])$/.test(hostname);
}

export function isUnproxied({ hostname, port, protocol }: URL, noProxy: string): boolean {
  const host = hostname.replace(/^\[|\]$|\.$/g, '');
  const wantedPort = port || (protocol === 'https:' ? '443' : '80');
  return noProxy.split(/[\s,]+/).some((entry) => {
    if (entry === '*') return true;
    const parts = (ipv6.exec(entry) ?? named.exec(entry))?.groups;
    if (parts?.['port'] !== undefined && Number(parts['port']) !== Number(wantedPort)) return false;
    const pattern = parts === undefined ? entry : `${parts['host']}${parts['bits'] ?? ''}`;
    return isIP(host) === 0 ? isWithinDomain(host, pattern) : isWithinNetwork(host, pattern);
  });
}

function isWithinDomain(host: string, pattern: string): boolean {
  const domain = pattern.toLowerCase().replace(/^\*?\.|\.$/g, '');
  return domain !== '' && `.${host}`.endsWith(`.${domain}`);
}

function isWithinNetwork(host: string, pattern: string): boolean {
  const [, network = '', bits] = /^([\d.]+|[\da-f:.]+)(?:\/(\d+))?$/i.exec(pattern) ?? [];
  const family = isIP(network);
  const bitsMax = family === 4 ? 32 : 128;
  const prefix = Number(bits ?? bitsMax);
  if (family === 0 || family !== isIP(host) || prefix > bitsMax) return false;
  const list = new BlockList();
  list.addSubnet(network, prefix, family === 4 ? 'ipv4' : 'ipv6');
  return list.check(host, family === 4 ? 'ipv4' : 'ipv6');
}
