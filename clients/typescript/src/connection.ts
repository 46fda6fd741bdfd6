/** Connections to the service: their time limit, their proxy, and the reason if none was made. */
import { Agent, EnvHttpProxyAgent, fetch as send } from 'undici';
import { MaxsimdError } from './errors.ts';
import { isThisMachine, isUnproxied } from './no-proxy.ts';

/** A service that was never reached is given 5 s. One attempt ends before that. */
export const connectMsMax = 4_000;

/** `fetch` through the proxy that the environment names for this address (HTTPS_PROXY, HTTP_PROXY, NO_PROXY). */
export function fetchFor(url: string): typeof fetch {
  const dispatcher = dispatcherFor(new URL(url));
  const fetchOnce = (address: string, init: object): unknown => send(address, { ...init, dispatcher });
  return fetchOnce as typeof fetch;
}

function dispatcherFor(url: URL): Agent | EnvHttpProxyAgent {
  const connect = { timeout: connectMsMax };
  // An empty variable counts as none, as for curl.
  const noProxy = process.env['no_proxy'] || process.env['NO_PROXY'] || '';
  if (isThisMachine(url) || isUnproxied(url, noProxy)) return new Agent({ connect });
  try {
    return new EnvHttpProxyAgent({
      connect,
      // It is read above; undici reads no networks.
      noProxy: '',
      proxyTls: connect,
      requestTls: connect,
      // Many proxies open tunnels to port 443 only.
      proxyTunnel: false,
      // Otherwise HTTP_PROXY would be used for https:// too.
      ...(url.protocol === 'https:' && { httpProxy: '' }),
    });
  } catch (error) {
    throw new MaxsimdError('a proxy that the environment names is no http:// or https:// address', {
      cause: error,
    });
  }
}

const unconnectedCodes = new Set([
  'EACCES',
  'EADDRNOTAVAIL',
  'EAI_AGAIN',
  'ECONNREFUSED',
  'EHOSTDOWN',
  'EHOSTUNREACH',
  'ENETDOWN',
  'ENETUNREACH',
  'ENOTFOUND',
  'EPERM',
  'UND_ERR_CONNECT_TIMEOUT',
  // An untrusted certificate (X509_verify_cert_error_string of OpenSSL), or a port without TLS.
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'ERR_SSL_PACKET_LENGTH_TOO_LONG',
  'ERR_SSL_WRONG_VERSION_NUMBER',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

/** The innermost cause of an error of fetch. fetch itself only says "fetch failed". */
export interface ConnectionProblem {
  readonly reason: string;
  /** No connection was made, so no request was received. */
  readonly isUnconnected: boolean;
}

export function connectionProblem(error: unknown): ConnectionProblem {
  let inner = error as { readonly cause?: unknown; readonly code?: string; readonly message?: string };
  while (typeof inner.cause === 'object' && inner.cause !== null) inner = inner.cause;
  const { code = '', message = '' } = inner;
  return {
    reason: message || code || 'connection failed',
    isUnconnected:
      unconnectedCodes.has(code) ||
      // These two have no code of their own.
      message === 'bad port' ||
      message.startsWith('Proxy response ('),
  };
}
