/** Whether a listener on this host is reached from this machine only. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

/** Whether `unix:/path` or `host:port` is reached from this machine only. */
export function isLocalAddress(address: string): boolean {
  if (address.startsWith('unix:')) return true;
  const [, bracketed, host = bracketed] = /^(?:\[([^\]]+)\]|([^:]+))(?::\d+)?$/.exec(address) ?? [];
  return host !== undefined && isLoopback(host);
}
