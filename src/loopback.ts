/** Whether only this machine reaches a listener on this host. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

/** Whether only this machine reaches `unix:/path` or `host:port`. */
export function isLocalAddress(address: string): boolean {
  if (address.startsWith('unix:')) return true;
  const [, bracketed, host = bracketed] = /^(?:\[([^\]]+)\]|([^:]+))(?::\d+)?$/.exec(address) ?? [];
  return host !== undefined && isLoopback(host);
}
