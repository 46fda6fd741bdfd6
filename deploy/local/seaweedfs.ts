/** Starts SeaweedFS as one process. It serves S3 on a loopback port, with one pair of keys. */
import { randomBytes } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import {
  CreateBucketCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { freePort } from './free-port.ts';
import { startServer, type RunningServer } from './server-process.ts';

export interface SeaweedOptions {
  /** The program `weed`. */
  readonly program: string;
  readonly directory: string;
  readonly port: number;
  /** PEM files for TLS. Absent = no TLS. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca: string };
}

export interface RunningSeaweed extends RunningServer {
  readonly bucket: string;
  /** The AWS variables to use it. */
  readonly environment: Readonly<Record<string, string>>;
}

const bucket = 'maxsimd';
const region = 'us-east-1';

export async function startSeaweed(options: SeaweedOptions): Promise<RunningSeaweed> {
  const { program, directory, port, tls } = options;
  const data = path.join(directory, 'data');
  await mkdir(data, { recursive: true });
  const [accessKeyId, secretAccessKey] = [randomBytes(10).toString('hex'), randomBytes(20).toString('hex')];
  const keys = path.join(directory, 'keys.json');
  const identity = {
    name: 'maxsimd',
    credentials: [{ accessKey: accessKeyId, secretKey: secretAccessKey }],
    actions: ['Admin', 'Read', 'Write', 'List'],
  };
  await writeFile(keys, JSON.stringify({ identities: [identity] }), { mode: 0o600 });
  const endpoint = `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`;
  const client = new S3Client({
    endpoint,
    region,
    forcePathStyle: true,
    maxAttempts: 1,
    credentials: { accessKeyId, secretAccessKey },
    ...(tls === undefined ? {} : { requestHandler: { httpsAgent: { ca: await readFile(tls.ca) } } }),
  });
  const server = await startServer({
    name: 'SeaweedFS',
    command: program,
    args: await argumentsOf({ data, port, keys, tls }),
    port,
    logFile: path.join(directory, 'weed.log'),
    environment: { HOME: directory },
    // Its orderly end takes longer than `stop` waits. All that it has answered is in files.
    stopSignal: 'SIGKILL',
    probe: () => probe(client),
  });
  return {
    ...server,
    bucket,
    environment: {
      AWS_ENDPOINT_URL_S3: endpoint,
      AWS_REGION: region,
      AWS_ACCESS_KEY_ID: accessKeyId,
      AWS_SECRET_ACCESS_KEY: secretAccessKey,
    },
  };
}

async function argumentsOf({
  data,
  port,
  keys,
  tls,
}: {
  readonly data: string;
  readonly port: number;
  readonly keys: string;
  readonly tls: SeaweedOptions['tls'] | undefined;
}): Promise<string[]> {
  const ports = await Promise.all(Array.from({ length: 7 }, freePort));
  const [master, masterGrpc, volume, volumeGrpc, filer, filerGrpc, s3Grpc] = ports.map(String);
  return [
    '-logtostderr',
    'server',
    `-dir=${data}`,
    '-ip=127.0.0.1',
    '-ip.bind=127.0.0.1',
    `-master.port=${master}`,
    `-master.port.grpc=${masterGrpc}`,
    '-master.volumeSizeLimitMB=1024',
    '-master.telemetry=false',
    // With the default a restarted server waits ten seconds, once or twice, before it elects itself.
    '-master.electionTimeout=500ms',
    '-master.heartbeatInterval=50ms',
    `-volume.port=${volume}`,
    `-volume.port.grpc=${volumeGrpc}`,
    '-volume.max=0',
    '-volume.preStopSeconds=0',
    '-filer',
    `-filer.port=${filer}`,
    `-filer.port.grpc=${filerGrpc}`,
    '-s3',
    `-s3.port=${port}`,
    `-s3.port.grpc=${s3Grpc}`,
    `-s3.config=${keys}`,
    '-s3.port.iceberg=0',
    '-s3.port.lance=0',
    ...(tls === undefined ? [] : [`-s3.cert.file=${tls.cert}`, `-s3.key.file=${tls.key}`]),
  ];
}

/** A bucket can be created before the part that stores objects is found, above all after a restart. So an object is stored too. */
async function probe(client: S3Client): Promise<void> {
  await client.send(new CreateBucketCommand({ Bucket: bucket })).catch((error: unknown) => {
    if (!(error instanceof Error && error.name.startsWith('BucketAlready'))) throw error;
  });
  const probed = { Bucket: bucket, Key: 'probe' };
  await client.send(new PutObjectCommand({ ...probed, Body: Buffer.alloc(64 * 1024) }));
  const { Body: body } = await client.send(new GetObjectCommand(probed));
  await body?.transformToByteArray();
  await client.send(new DeleteObjectCommand(probed));
}
