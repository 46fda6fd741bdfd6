/** The real server's listener behaves as its configuration says. */
import { rename } from 'node:fs/promises';
import { request } from 'node:https';
import { expect, test } from 'vitest';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { makeCertificate, type Certificate } from '../../support/network/tls.ts';
import { startServer } from '../../support/running/server.ts';

/** The header `keep-alive` of an answer, which comes over TLS by this certificate alone. */
function keepAliveOf(url: string, { certificate }: Certificate): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const sent = request(`${url}/healthz`, { ca: certificate, agent: false }, (response) => {
      response.resume();
      resolve(response.headers['keep-alive']);
    });
    sent.setHeader('connection', 'keep-alive');
    sent.once('error', reject).end();
  });
}

test('idle connections are kept as long as MAXSIMD_HTTP_KEEP_ALIVE_MS says, and a new certificate is read without a restart', async () => {
  const first = await makeCertificate(await newDirectory());
  const second = await makeCertificate(await newDirectory());
  const server = await startServer({
    sharedEncoder: true,
    env: {
      MAXSIMD_TLS_FILES: `${first.certificateFile},${first.keyFile}`,
      MAXSIMD_HTTP_KEEP_ALIVE_MS: '620000',
    },
  });
  expect(await keepAliveOf(server.url, first)).toBe('timeout=620');
  await rename(second.keyFile, first.keyFile);
  await rename(second.certificateFile, first.certificateFile);
  await expect.poll(() => keepAliveOf(server.url, second).catch(() => '')).toBe('timeout=620');
  await server.stop();
});
