/** The environment of the history battery: shared servers, three node processes behind proxies of their own, and tenants. */
import { randomBytes, randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { RunningPostgres } from '../../../../deploy/local/postgres.ts';
import type { RunningRedis } from '../../../../deploy/local/redis.ts';
import type { RunningSeaweed } from '../../../../deploy/local/seaweedfs.ts';
import type { TenantLimits } from '../../../../src/catalog/contract.ts';
import { openPostgresCatalog } from '../../../../src/catalog/postgres/open-catalog.ts';
import { openS3ObjectStore } from '../../../../src/index/storage/s3-object-store.ts';
import { wordModel } from '../../encoder/word-encoder.ts';
import { newDirectory } from '../../machine/temporary-directory.ts';
import { startCuttingProxy, type CuttingProxy } from '../../network/cutting-proxy.ts';
import { startFaultyHttp, type FaultyHttp } from '../../network/faulty-http.ts';
import { indexInput } from '../../stages/catalog-fixture.ts';
import { newDatabase } from '../servers.ts';
import type { Stored } from '../stored-objects.ts';
import { newKeyedTenant, type BatteryTenant } from './tenants.ts';
import { NodeProcess } from './node-process.ts';

export interface Servers {
  readonly postgres: RunningPostgres;
  readonly weed: RunningSeaweed;
  readonly redis: RunningRedis;
}

export interface BatteryNode {
  readonly process: NodeProcess;
  readonly toPostgres: CuttingProxy;
  readonly toObjects: FaultyHttp;
}

/** `catalog` and `objects` reach the servers directly, without a proxy. */
export interface Battery extends Stored {
  readonly servers: Servers;
  readonly nodes: readonly BatteryNode[];
  /** The tenant whose documents are written and searched. */
  readonly writer: BatteryTenant;
  /** A tenant that may send few requests a minute. */
  readonly rated: BatteryTenant;
  /** A tenant that may have few requests at a time. */
  readonly slotted: BatteryTenant;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface BatteryOptions {
  readonly random: () => number;
  /** Every node has this planted fault. */
  readonly planted?: 'heads';
  readonly onBackgroundError: (job: string, message: string) => void;
}

const nodeCount = 3;
const clockOffsetMsMax = 300_000;

export async function openBattery(servers: Servers, options: BatteryOptions): Promise<Battery> {
  const { postgres, weed, redis } = servers;
  Object.assign(process.env, weed.environment);
  await using opening = new AsyncDisposableStack();
  const directory = await newDirectory();
  const keyPepper = randomBytes(32);
  const pepperFile = path.join(directory, 'pepper');
  await writeFile(pepperFile, keyPepper);
  const url = await newDatabase(postgres);
  const catalog = opening.adopt(await openPostgresCatalog({ url, keyPepper }), (opened) => opened.close());
  const blobsUrl = `s3://${weed.bucket}/${randomUUID()}`;
  const objects = opening.adopt(openS3ObjectStore(blobsUrl), (opened) => opened.close());
  const environment = {
    ...weed.environment,
    MAXSIMD_BLOBS_URL: blobsUrl,
    MAXSIMD_LIMITER_URL: redis.url,
    MAXSIMD_KEY_PEPPER_FILE: pepperFile,
    ...(options.planted === undefined ? {} : { TEST_PLANTED: options.planted }),
  };

  const openNode = async (place: number): Promise<BatteryNode> => {
    const { host } = new URL(url);
    const toPostgres = opening.adopt(await startCuttingProxy(host), (proxy) => proxy.close());
    const toObjects = opening.adopt(await startFaultyHttp(weed.port), (proxy) => proxy.close());
    const node = new NodeProcess({
      directory: path.join(directory, `node-${place}`),
      environment: {
        ...environment,
        MAXSIMD_CATALOG_URL: url.replace(host, toPostgres.address),
        AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${toObjects.port}`,
      },
      clockOffsetMs: () => Math.round((2 * options.random() - 1) * clockOffsetMsMax),
      onBackgroundError: options.onBackgroundError,
    });
    opening.defer(() => node.kill());
    await node.start();
    return { process: node, toPostgres, toObjects };
  };

  const openTenant = async (limits: Partial<TenantLimits>): Promise<BatteryTenant> => {
    const tenant = await newKeyedTenant(catalog, keyPepper, limits);
    const index = {
      ...indexInput(tenant.tenantId, 'index'),
      model: wordModel.name,
      modelVersion: wordModel.version,
    };
    await catalog.createIndex(index, 1);
    return { ...tenant, indexId: index.id };
  };

  const [writer, rated, slotted] = await Promise.all([
    openTenant({ inputTokens: 1_000_000_000_000n }),
    openTenant({ requestsPerMinute: 60 }),
    openTenant({ maxConcurrentRequests: 9 }),
  ]);
  const nodes = await Promise.all(Array.from({ length: nodeCount }, (_node, place) => openNode(place + 1)));
  const opened = opening.move();
  return {
    servers,
    url,
    catalog,
    objects,
    blobsUrl,
    nodes,
    writer,
    rated,
    slotted,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}
