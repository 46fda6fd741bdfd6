/** Makes the client of the service, and reports a wrong address or key in the words of the command line. */
import { ApiError, MaxsimdError } from '../../clients/typescript/src/errors.ts';
import { Maxsimd, type MaxsimdOptions } from '../../clients/typescript/src/client.ts';
import type { CreateIndex, Index, UsageSummary } from '../../clients/typescript/src/types.ts';
import { limitCommand } from '../service/limits/raising.ts';
import { CommandFailure } from './failure.ts';
import { parseJson } from './json.ts';

/** Called before each wait for another attempt. */
export type OnWait = NonNullable<MaxsimdOptions['onRetry']>;

/** A service, as the options name it. */
export interface Endpoint {
  readonly url: string;
  readonly key: string;
  readonly timeoutMs: number;
  /** For `--verbose`. */
  readonly onWait?: OnWait | undefined;
}

/**
 * Waits `retryMsMax` for a service that is away, 5 s where it was never reached, and for as long as the limits of the
 * tenant ask.
 */
export function clientOf(
  endpoint: Endpoint,
  retryMsMax: number,
  options: Partial<MaxsimdOptions> = {},
): Maxsimd {
  try {
    return new Maxsimd({
      url: endpoint.url,
      apiKey: endpoint.key,
      timeoutMs: endpoint.timeoutMs,
      retryMsMax,
      unreachedMsMax: 5_000,
      waitsForLimits: true,
      parse: parseJson,
      ...options,
      onRetry: (error, delayMs) => {
        endpoint.onWait?.(error, delayMs);
        options.onRetry?.(error, delayMs);
      },
    });
  } catch (error) {
    if (!(error instanceof MaxsimdError)) throw error;
    const words = error.message.replace('`url`', '--url').replace('`apiKey`', 'the API key');
    throw new CommandFailure('usage_error', words, { cause: error });
  }
}

const uuid = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** A UUID is an id, and everything else a name. */
export async function findIndex(
  client: Maxsimd,
  nameOrId: string,
  signal?: AbortSignal,
): Promise<Index | undefined> {
  try {
    return await client.getIndex(uuid.test(nameOrId) ? nameOrId : `name:${nameOrId}`, { signal });
  } catch (error) {
    if (error instanceof ApiError && error.code === 'not_found') return undefined;
    if (!isUnknownTo(error, 'index_id')) throw error;
    return (await client.listIndexes({ signal })).find(({ name }) => name === nameOrId);
  }
}

/** Whether a service of the release before refuses what this one knows: names in addresses, and `if_exists`. */
function isUnknownTo(error: unknown, path: string): boolean {
  return (
    error instanceof ApiError && error.status === 422 && error.issues.some((issue) => issue.path === path)
  );
}

export async function requireIndex(client: Maxsimd, nameOrId: string, signal?: AbortSignal): Promise<Index> {
  const index = await findIndex(client, nameOrId, signal);
  if (index === undefined)
    throw new CommandFailure('not_found', `there is no index ${JSON.stringify(nameOrId)} at ${client.url}`);
  return index;
}

export interface WantedIndex {
  /** Or the id of one that exists. */
  readonly name: string;
  /** `NAME` or `NAME/VERSION`; `undefined` = the default of the service. */
  readonly model: string | undefined;
  /** The match field of a new index; `undefined` = none. */
  readonly matchField?: string | undefined;
}

/** The index of this name, created where it is missing. One that is given by its id must exist. */
export async function ensureIndex(
  client: Maxsimd,
  { name, model: wanted, matchField }: WantedIndex,
  signal: AbortSignal,
): Promise<{ readonly index: Index; readonly created: boolean }> {
  const find = uuid.test(name) ? requireIndex : findIndex;
  const existing = await find(client, name, signal);
  if (existing !== undefined) return { index: havingModel(existing, wanted), created: false };
  const body = {
    name,
    ...modelFields(wanted),
    ...(matchField !== undefined && { match_fields: [matchField] }),
  };
  try {
    // Another import may create it at the same time.
    return { index: await client.createIndex({ ...body, if_exists: 'return' }, { signal }), created: true };
  } catch (error) {
    if (!isUnknownTo(error, 'if_exists')) throw error;
    return { index: await client.createIndex(body, { signal }), created: true };
  }
}

/** `wanted`: `NAME` or `NAME/VERSION`; `undefined` = the default of the service. */
export function modelFields(wanted: string | undefined): Pick<CreateIndex, 'model' | 'model_version'> {
  const [model, version] = wanted?.split('/', 2) ?? [];
  return { ...(model !== undefined && { model }), ...(version !== undefined && { model_version: version }) };
}

/** The index, if it has the model that is wanted. */
function havingModel(index: Index, wanted: string | undefined): Index {
  const version = `${index.model}/${index.model_version}`;
  if (wanted === undefined || wanted === index.model || wanted === version) return index;
  throw new CommandFailure(
    'usage_error',
    `the index ${JSON.stringify(index.name)} has the model ${version}, which never changes: import into another index for ${wanted}`,
  );
}

/** One line for a user whose command mostly waits: it names the limit, and says how to raise it. */
export function rateLimitHint({ limits, tenant }: UsageSummary, requests?: number): string {
  const { requests_per_minute: requestsPerMinute } = limits;
  const minutes = requests === undefined ? 0 : Math.ceil(requests / requestsPerMinute);
  const duration = minutes > 1 ? `: ${requests} take about ${minutes} minutes` : '';
  const raised = Math.max(6_000, 10 * requestsPerMinute);
  return (
    `maxsimd: the tenant may send ${requestsPerMinute} requests a minute, so this waits${duration}. To raise the limit, run this on the ` +
    `service's machine: ${limitCommand(tenant, 'requests-per-minute', raised)}`
  );
}
