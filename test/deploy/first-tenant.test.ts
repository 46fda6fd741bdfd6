/** `deploy/docker/first-tenant.mjs` with a stand-in for the API of Kubernetes: it holds one Secret. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { newDirectory } from '../support/machine/temporary-directory.ts';
import { makeCertificate } from '../support/network/tls.ts';
import { childEnvironment, entryPoint } from '../support/running/launch.ts';

const script = path.resolve(import.meta.dirname, '../../deploy/docker/first-tenant.mjs');

/** A pod with a token, and a Secret that it may read and write. */
async function startPod() {
  const folder = await newDirectory();
  const { certificate, keyFile } = await makeCertificate(folder);
  const files = { token: 'the token', namespace: 'search', 'ca.crt': certificate };
  for (const [name, content] of Object.entries(files)) writeFileSync(path.join(folder, name), content);
  const secret: { data?: Record<string, string> } = {};
  const requests: string[] = [];
  const server = createServer({ cert: certificate, key: readFileSync(keyFile) }, (request, response) => {
    void (async () => {
      const text = (await request.toArray()).join('');
      requests.push(`${request.method} ${request.url}`);
      if (request.headers.authorization !== 'Bearer the token') return response.writeHead(401).end('refused');
      if (request.method === 'PATCH') {
        expect(request.headers['content-type']).toBe('application/merge-patch+json');
        const { stringData } = JSON.parse(text) as { readonly stringData: Readonly<Record<string, string>> };
        secret.data = Object.fromEntries(
          Object.entries(stringData).map(([name, value]) => [name, Buffer.from(value).toString('base64')]),
        );
      }
      return response.end(JSON.stringify(secret));
    })();
  });
  onTestFinished(() => void server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const environment = childEnvironment({
    KUBERNETES_SERVICE_HOST: '127.0.0.1',
    KUBERNETES_SERVICE_PORT: String(port),
    MAXSIMD_DATA_DIR: path.join(folder, 'data'),
  });
  const run = async (...args: readonly string[]): Promise<string> =>
    (await promisify(execFile)(process.execPath, args, { env: environment })).stdout;
  return {
    folder,
    secret,
    requests,
    makeTenant: () => run(script, 'release-first-tenant', 'first', folder, entryPoint),
    keys: async () => {
      const { data } = JSON.parse(await run(entryPoint, 'key', 'list', 'first', '--json')) as {
        readonly data: readonly object[];
      };
      return data.length;
    },
  };
}

it('makes a tenant once, and another key only if the Secret has lost the first', async () => {
  const pod = await startPod();
  expect(await pod.makeTenant()).toContain('a key of the tenant first is in the Secret');
  const place = '/api/v1/namespaces/search/secrets/release-first-tenant';
  expect(pod.requests).toEqual([`GET ${place}`, `PATCH ${place}`]);
  const key = pod.secret.data?.['api-key'];
  expect(Buffer.from(key ?? '', 'base64').toString()).toMatch(/^qkv_live_\w+/);

  expect(await pod.makeTenant()).toContain('has a key');
  expect(pod.secret.data?.['api-key']).toBe(key);
  expect(await pod.keys()).toBe(1);

  delete pod.secret.data;
  await pod.makeTenant();
  expect(pod.secret.data?.['api-key']).not.toBe(key);
  expect(await pod.keys()).toBe(2);
});

it('makes none if Kubernetes refuses, and says so', async () => {
  const pod = await startPod();
  writeFileSync(path.join(pod.folder, 'token'), 'another');
  await expect(pod.makeTenant()).rejects.toThrow('401 refused');
  await expect(pod.keys()).rejects.toThrow('there is no catalog');
});
