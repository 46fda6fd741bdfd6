/** The service under load: a server of its own or one given by address, with an index of real text. */
import { startServer, type ServerOptions } from './server-process.ts';

export interface Target {
  readonly url: string;
  readonly apiKey: string;
  readonly indexId: string;
  readonly metricsUrl: string | undefined;
  readonly processId: number | undefined;
  readonly model: string;
  /** Aborts with the reason when a server of our own ends before it is closed. */
  readonly ended: AbortSignal;
  /** Ends the server, or deletes the index of one given by address. */
  close(): Promise<void>;
}

export interface TargetOptions extends ServerOptions {
  /** Texts to store; queries and new documents are made of them too. */
  readonly texts: readonly string[];
  /** Requests at a time that store them; one if absent. */
  readonly storesAtOnce?: number;
  readonly remote:
    | { readonly url: string; readonly apiKey: string; readonly metricsUrl: string | undefined }
    | undefined;
  /** Ends the storing of texts. */
  readonly signal?: AbortSignal;
}

type Service = Pick<Target, 'url' | 'apiKey' | 'metricsUrl' | 'processId' | 'ended'>;

const batchSize = 25;

/** When the server ends meanwhile, this fails with the reason of that, and nothing is left behind. */
export async function openTarget(options: TargetOptions): Promise<Target> {
  const { remote } = options;
  const server = remote === undefined ? await startServer(options) : undefined;
  const service: Service = server ?? {
    ...required(remote),
    processId: undefined,
    ended: new AbortController().signal,
  };
  let indexId: string | undefined;
  const close = async (): Promise<void> => {
    if (server !== undefined) await server.close();
    else if (indexId !== undefined) await call(service, 'DELETE', `/v1/indexes/${indexId}`);
  };
  try {
    const index = await call(service, 'POST', '/v1/indexes', { name: `capacity-${Date.now()}` });
    indexId = String(index['id']);
    await store(options, service, indexId);
    const model = `${String(index['model'])}/${String(index['model_version'])}`;
    return { ...service, indexId, model, close };
  } catch (error) {
    throw await closeAfter(error, [{ ...service, close }]);
  }
}

/** Runs the work and closes the targets after it. Work may add targets. When a server ends meanwhile, this fails with the reason. */
export async function closing<T>(targets: readonly Target[], work: () => Promise<T>): Promise<T> {
  let result: T;
  try {
    result = await work();
  } catch (error) {
    throw await closeAfter(error, targets);
  }
  for (const target of targets) await target.close();
  return result;
}

/** The error to throw: the reason why a server ended, else the failure itself. */
async function closeAfter(
  failure: unknown,
  targets: readonly Pick<Target, 'ended' | 'close' | 'url'>[],
): Promise<unknown> {
  let reason = failure;
  for (const target of targets) {
    const { url, ended } = target;
    try {
      await target.close();
    } catch (error) {
      const [first, then] = [failure, error].map((each) => (each as Error).message);
      reason = new Error(`${first}; what was stored at ${url} is left there: ${then}`, { cause: failure });
    }
    if (ended.aborted) reason = new Error((ended.reason as Error).message, { cause: failure });
  }
  return reason;
}

async function store(
  { texts, storesAtOnce = 1, signal }: TargetOptions,
  service: Service,
  indexId: string,
): Promise<void> {
  let next = 0;
  const storeInTurn = async (): Promise<void> => {
    while (next < texts.length) {
      const from = next;
      next += batchSize;
      const documents = texts.slice(from, next).map((text, i) => ({ doc_id: `document-${from + i}`, text }));
      signal?.throwIfAborted();
      await call(service, 'POST', `/v1/indexes/${indexId}/documents`, { documents });
    }
  };
  await Promise.all(Array.from({ length: storesAtOnce }, storeInTurn));
}

/** The answer's JSON; any error status throws. */
export async function call(
  { url, apiKey }: Pick<Service, 'url' | 'apiKey'>,
  method: 'POST' | 'DELETE',
  route: string,
  body?: unknown,
): Promise<Record<string, unknown>> {
  const response = await fetch(new URL(route, url), {
    method,
    headers: {
      authorization: `Bearer ${apiKey}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${route}: ${response.status} ${text.slice(0, 300)}`);
  return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
}

function required<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('this is a bug: neither a server nor an address');
  return value;
}
