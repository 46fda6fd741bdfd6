/**
 * The whole service for tests of the HTTP layer. It remembers what it was asked, and can be made to fail, to wait, or to answer
 * results that a test made.
 */
import { rmSync } from 'node:fs';
import { generateApiKey, hashApiKey } from '../../../src/catalog/api-key.ts';
import type {
  AdmittedRequest,
  RankedResponse,
  RequestContext,
  Service,
} from '../../../src/service/contract.ts';
import type { WordEncoder } from '../encoder/word-encoder.ts';
import { openServiceStage, type ServiceStage } from '../stages/service-stage.ts';

const key = generateApiKey();
/** The header of a request with the key of the only tenant. */
export const authorization = `Bearer ${key.apiKey}`;
export const tenantId = 'tenant-1';

export interface Call {
  readonly name: string;
  readonly context: RequestContext;
  readonly arguments: readonly unknown[];
}

export interface WatchedService extends Service {
  readonly calls: Call[];
  readonly counted: RequestContext[];
  /** Requests whose callers left. */
  readonly left: RequestContext[];
  permitsHeld: number;
  /** Replaces the access that the key has. */
  access: AdmittedRequest['access'] | undefined;
  /** Replaces the next outcomes of `admit`. */
  admitFailure: unknown;
  countFailure: unknown;
  /** Runs before every operation. It may throw or wait. */
  before: (context: RequestContext, name: string) => Promise<void> | void;
  /** Answers of `search` and `score` in place of the real ones. */
  ranked: RankedResponse | undefined;
  readonly encoder: WordEncoder;
}

type Operation = (context: RequestContext, ...given: readonly unknown[]) => Promise<unknown>;

const notOperations = new Set([
  'admit',
  'admitSession',
  'openSession',
  'endSession',
  'countRequest',
  'countLeft',
  'readiness',
  'drain',
  'maintain',
  'statistics',
]);

let shared: Promise<ServiceStage> | undefined;

/**
 * Watches one service that all tests of a process share, because a service takes longer to open than most of them. Its
 * directory goes with the process.
 */
export async function openWatchedService(): Promise<WatchedService> {
  return watch(await (shared ??= openShared()));
}

async function openShared(): Promise<ServiceStage> {
  const stage = await openServiceStage(undefined, {}, { nowMs: Date.now });
  process.once('exit', () => rmSync(stage.directory, { recursive: true, force: true }));
  await stage.catalog.createTenant({
    id: tenantId,
    name: 'Test',
    limits: {
      requestsPerMinute: 1_000_000,
      maxConcurrentRequests: 1000,
      inputTokens: 2n ** 61n,
      documents: 100_000,
    },
    key: { id: key.id, hash: hashApiKey(key.apiKey, stage.catalog.keyPepper()) },
  });
  return stage;
}

function watch({ service: real, encoder }: ServiceStage): WatchedService {
  const operation =
    (name: string, run: Operation): Operation =>
    async (context, ...given) => {
      service.calls.push({ name, context, arguments: given });
      await service.before(context, name);
      const isRanked = name === 'search' || name === 'score';
      return (isRanked ? service.ranked : undefined) ?? run(context, ...given);
    };
  const operations = Object.entries(real)
    .filter(([name, method]) => typeof method === 'function' && !notOperations.has(name))
    .map(([name, method]) => [name, operation(name, method.bind(real) as Operation)]);
  const watchPermit = (admitted: AdmittedRequest): AdmittedRequest => {
    service.permitsHeld += 1;
    let held = true;
    const release = (): void => {
      if (held) service.permitsHeld -= 1;
      held = false;
      admitted.permit.release();
    };
    return { ...admitted, access: service.access ?? admitted.access, permit: { release } };
  };
  const service: WatchedService = {
    ...real,
    ...(Object.fromEntries(operations) as Partial<Service>),
    calls: [],
    counted: [],
    left: [],
    permitsHeld: 0,
    access: undefined,
    admitFailure: undefined,
    countFailure: undefined,
    before: () => {},
    ranked: undefined,
    encoder,
    async admit(...given) {
      if (service.admitFailure !== undefined) throw service.admitFailure;
      return watchPermit(await real.admit(...given));
    },
    async admitSession(...given) {
      return watchPermit(await real.admitSession(...given));
    },
    async countLeft(context) {
      service.left.push(context);
      await real.countLeft(context);
    },
    async countRequest(context) {
      if (service.countFailure !== undefined) throw service.countFailure;
      service.counted.push(context);
      await real.countRequest(context);
    },
  };
  return service;
}
