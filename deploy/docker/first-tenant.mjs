/**
 * `first-tenant.mjs SECRET TENANT [ACCOUNT [PROGRAM]]`: makes a tenant and puts its key into a Secret of Kubernetes, which exists,
 * under `api-key`. It does nothing if the Secret has a key, and adds a key to a tenant that exists. ACCOUNT is the folder with the token, the authority and the namespace
 * of the pod; PROGRAM is maxsimd. Without a connection to the API of Kubernetes no tenant is made.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import path from 'node:path';
import { promisify } from 'node:util';

const waitMs = 10_000;
const [
  secret,
  tenant,
  account = '/var/run/secrets/kubernetes.io/serviceaccount',
  program = path.join(import.meta.dirname, 'node_modules/maxsimd/bin/maxsimd.mjs'),
] = process.argv.slice(2);
const read = (name) => readFileSync(path.join(account, name), 'utf8');

const { data } = await ask('GET');
if (data?.['api-key'] === undefined) await makeTenant();
else process.stdout.write(`the Secret ${secret} has a key\n`);

async function makeTenant() {
  const { api_key: key } = await maxsimd('tenant', 'create', '--name', tenant).catch(() =>
    maxsimd('key', 'create', tenant),
  );
  await ask('PATCH', { stringData: { 'api-key': key } });
  process.stdout.write(`a key of the tenant ${tenant} is in the Secret ${secret}\n`);
}

async function maxsimd(...words) {
  const { stdout } = await promisify(execFile)(process.execPath, [program, ...words, '--json']);
  return JSON.parse(stdout);
}

/** Sends a request for the Secret to the API of Kubernetes, and returns the Secret that it answers. */
function ask(method, patch) {
  const { promise, resolve, reject } = Promise.withResolvers();
  const options = {
    method,
    host: process.env.KUBERNETES_SERVICE_HOST,
    port: process.env.KUBERNETES_SERVICE_PORT,
    path: `/api/v1/namespaces/${read('namespace')}/secrets/${secret}`,
    ca: read('ca.crt'),
    headers: {
      authorization: `Bearer ${read('token')}`,
      'content-type': 'application/merge-patch+json',
    },
    signal: AbortSignal.timeout(waitMs),
  };
  const sent = request(options, async (response) => {
    try {
      const text = (await response.toArray()).join('');
      if (response.statusCode === 200) resolve(JSON.parse(text));
      else reject(new Error(`${method} ${options.path}: ${response.statusCode} ${text}`));
    } catch (error) {
      reject(error);
    }
  });
  sent.on('error', reject);
  sent.end(patch === undefined ? undefined : JSON.stringify(patch));
  return promise;
}
