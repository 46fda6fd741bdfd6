import { mkdir, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { connect } from 'node:tls';
import { expect, it } from 'vitest';
import { ConfigError } from '../../src/app/config.ts';
import { followTlsFiles, readTlsFiles, renewIdentity } from '../../src/app/tls-files.ts';
import { createLogger } from '../../src/observation/logging.ts';
import { startHttp } from '../support/http/http-server.ts';
import { listen } from '../support/http/sockets.ts';
import { newDirectory } from '../support/machine/temporary-directory.ts';
import { makeCertificate, type Certificate } from '../support/network/tls.ts';

async function newCertificate(): Promise<Certificate> {
  const directory = path.join(await newDirectory(), 'made');
  await mkdir(directory);
  return makeCertificate(directory);
}

const configOf = ({ certificateFile, keyFile }: Certificate) => ({
  MAXSIMD_TLS_FILES: [certificateFile, keyFile],
});

/** The certificate that a new connection is shown, as PEM. */
function shownAt(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => {
      const { raw } = socket.getPeerCertificate();
      socket.destroy();
      resolve(raw.toString('base64'));
    });
    socket.once('error', reject);
  });
}

const base64Of = ({ certificate }: Certificate) => certificate.replaceAll(/-----[^-]+-----|\s/g, '');

it('a certificate that is replaced is shown to new connections; files that cannot be used are logged once', async () => {
  const [first, second] = [await newCertificate(), await newCertificate()];
  const config = configOf(first);
  const current = await readTlsFiles(config);
  await using http = await startHttp({ tls: current! });
  const port = await listen(http);
  const lines: string[] = [];
  using _following = followTlsFiles(config, {
    current: current!,
    use: (identity) => renewIdentity(http.app.server, identity),
    logger: createLogger({ level: 'info', destination: { write: (line) => void lines.push(line) } }),
    everyMs: 5,
  });
  expect(await shownAt(port)).toBe(base64Of(first));

  // The certificate comes before its key: until then the pair cannot be used.
  await rename(second.certificateFile, first.certificateFile);
  await expect.poll(() => lines.length).toBe(1);
  expect(lines[0]).toContain('the old certificate stays');
  expect(await shownAt(port)).toBe(base64Of(first));

  await rename(second.keyFile, first.keyFile);
  await expect.poll(() => lines.length).toBe(2);
  expect(await shownAt(port)).toBe(base64Of(second));

  await writeFile(first.certificateFile, 'broken');
  await expect.poll(() => lines.length).toBe(3);
  expect(await shownAt(port)).toBe(base64Of(second));
});

it('files that cannot be used stop a start', async () => {
  const [first, second] = [await newCertificate(), await newCertificate()];
  const mixed = configOf({ ...first, keyFile: second.keyFile });
  await expect(readTlsFiles(mixed)).rejects.toThrow(ConfigError);
  expect(await readTlsFiles({ MAXSIMD_TLS_FILES: [] })).toBeUndefined();
});
