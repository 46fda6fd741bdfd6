/** The object store on versitygw, which is built from the source of a release (docs/guide/nodes.md, "Servers that were tried"). */
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe } from 'vitest';
import { builds, run, unlessStamped } from '../../clients/tools/install.ts';
import { freePort } from '../../deploy/local/free-port.ts';
import { startServer } from '../../deploy/local/server-process.ts';
import { describeObjectStore, type ObjectStoreServer } from '../index/storage/object-store-conformance.ts';
import { newDirectory } from '../support/machine/temporary-directory.ts';

const source = 'github.com/versity/versitygw/cmd/versitygw@v1.8.0';
const folder = path.join(builds, 'versitygw');
const noGo = spawnSync('go', ['version']).status === 0 ? undefined : 'there is no Go';
const bucket = 'maxsimd';

async function startVersitygw(): Promise<ObjectStoreServer> {
  const directory = await newDirectory();
  const [data, attributes] = [path.join(directory, 'data'), path.join(directory, 'attributes')];
  // Each folder of the data is a bucket.
  await mkdir(path.join(data, bucket), { recursive: true });
  await mkdir(attributes);
  const [accessKeyId, secretAccessKey] = [randomBytes(10).toString('hex'), randomBytes(20).toString('hex')];
  const port = await freePort();
  const server = await startServer({
    name: 'versitygw',
    command: path.join(folder, 'versitygw'),
    args: ['--port', `127.0.0.1:${port}`, '--quiet', 'posix', '--sidecar', attributes, data],
    port,
    logFile: path.join(directory, 'versitygw.log'),
    environment: { ROOT_ACCESS_KEY_ID: accessKeyId, ROOT_SECRET_ACCESS_KEY: secretAccessKey },
  });
  return {
    ...server,
    bucket,
    environment: {
      AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${port}`,
      AWS_REGION: 'us-east-1',
      AWS_ACCESS_KEY_ID: accessKeyId,
      AWS_SECRET_ACCESS_KEY: secretAccessKey,
    },
  };
}

describe.skipIf(noGo !== undefined)(
  `a store of another maker${noGo === undefined ? '' : ` (${noGo})`}`,
  () => {
    beforeAll(async () => {
      await unlessStamped(folder, source, async () => {
        await run('go', ['install', source], folder, { GOBIN: folder });
      });
    }, 3_600_000);

    describeObjectStore('versitygw', startVersitygw);
  },
);
