/**
 * The certificate of the listeners and its key. A process lives longer than a certificate, so the files are read again and
 * again. Their bytes are compared, because a new file may come by a rename or behind a link (certbot, secrets of
 * Kubernetes), which file systems do not report well. Open connections keep their certificate.
 */
import { createSecureContext, Server as SecureServer } from 'node:tls';
import type { TlsIdentity } from '../http/protocol/listener.ts';
import type { Logger } from '../observation/logging.ts';
import { ConfigError, readConfigured, type Config } from './config.ts';

type TlsConfig = Pick<Config, 'MAXSIMD_TLS_FILES'>;

const everyMsDefault = 10_000;

/** `undefined` if the configuration names no files. */
export async function readTlsFiles(config: TlsConfig): Promise<TlsIdentity | undefined> {
  const files = config.MAXSIMD_TLS_FILES.map((file) => readConfigured('MAXSIMD_TLS_FILES', file));
  const [cert, key] = await Promise.all(files);
  if (cert === undefined || key === undefined) return undefined;
  assertUsable({ cert, key });
  return { cert, key };
}

function assertUsable(identity: TlsIdentity): void {
  try {
    createSecureContext(identity);
  } catch (error) {
    throw new ConfigError(`MAXSIMD_TLS_FILES: not a certificate and its key: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/** Hands on new certificates. Files that cannot be used change nothing and are logged once. */
export function followTlsFiles(
  config: TlsConfig,
  options: {
    readonly current: TlsIdentity;
    readonly use: (identity: TlsIdentity) => void;
    readonly logger: Logger;
    readonly everyMs?: number;
  },
): Disposable {
  const { use, logger, everyMs = everyMsDefault } = options;
  let { current } = options;
  let reported = '';
  const look = async (): Promise<void> => {
    try {
      const read = await readTlsFiles(config);
      if (read === undefined || isSame(read, current)) return;
      use(read);
      current = read;
      reported = '';
      logger.info('new connections use the new TLS certificate');
    } catch (error) {
      const { message } = error as Error;
      if (message === reported) return;
      reported = message;
      logger.error({ reason: message }, 'the TLS files cannot be used: the old certificate stays');
    }
  };
  let timer = setTimeout(function again() {
    void look().then(() => (timer = setTimeout(again, everyMs).unref()));
  }, everyMs).unref();
  return { [Symbol.dispose]: () => clearTimeout(timer) };
}

/** New connections use the identity. A server without TLS stays as it is. */
export function renewIdentity(server: object, identity: TlsIdentity): void {
  if (server instanceof SecureServer) server.setSecureContext(identity);
}

function isSame(left: TlsIdentity, right: TlsIdentity): boolean {
  return (
    Buffer.from(left.cert).equals(Buffer.from(right.cert)) &&
    Buffer.from(left.key).equals(Buffer.from(right.key))
  );
}
