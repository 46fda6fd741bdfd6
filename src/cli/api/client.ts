/** The endpoints the command line uses, typed and checked; unknown response fields are ignored. */
import { z } from 'zod';
import { CommandFailure } from '../failure.ts';
import { checked } from './checked.ts';
import { type Endpoint } from './endpoint.ts';
import { exchangeWith, type Exchange, type Answer, type ApiRequest } from './exchange.ts';
import { ApiFailure } from './failure.ts';
import { pathSegment } from './path-segment.ts';
import { Retrying, type RetryingOptions } from './retry.ts';

const usageSchema = z.looseObject({
  period_start: z.string(),
  period_end: z.string(),
  usage: z.looseObject({
    input_tokens: z.string(),
    requests: z.number(),
    document_upserts: z.number(),
    searches: z.number(),
    scores: z.number(),
    documents: z.number(),
  }),
  limits: z.looseObject({
    input_tokens: z.string(),
    documents: z.number(),
    requests_per_minute: z.number(),
    max_concurrent_requests: z.number(),
  }),
  remaining: z.looseObject({ input_tokens: z.string(), documents: z.number() }),
});
const indexSchema = z.looseObject({
  id: z.string().min(1),
  name: z.string(),
  model: z.string(),
  model_version: z.string(),
  status: z.string(),
  created_at: z.string(),
});
const indexListSchema = z.object({ data: z.array(indexSchema) });
const upsertSchema = z.object({
  upserted_documents: z.number(),
  failed: z.array(z.object({ doc_id: z.string(), error: z.string() })),
  /** A service of an earlier version does not count them. */
  unknown_tokens: z
    .array(z.object({ doc_id: z.string(), unknown_tokens: z.number(), input_tokens: z.number() }))
    .default([]),
  usage: z.object({ input_tokens: z.number().default(0) }).default({ input_tokens: 0 }),
});
const searchSchema = z.object({
  results: z.array(
    z.object({
      doc_id: z.string(),
      chunk_id: z.string(),
      chunk_index: z.number(),
      score: z.number(),
      metadata: z.record(z.string(), z.unknown()),
    }),
  ),
});

export type Usage = z.output<typeof usageSchema>;
export type Index = z.output<typeof indexSchema>;
export type UpsertAnswer = z.output<typeof upsertSchema>;
export type SearchAnswer = z.output<typeof searchSchema>;

export interface SearchQuery {
  readonly query: string;
  readonly top_k?: number;
  readonly candidate_k?: number;
  readonly filter?: Readonly<Record<string, unknown>>;
  readonly return_components?: boolean;
}

export interface WantedIndex {
  readonly name: string;
  /** `NAME` or `NAME/VERSION`; `undefined` = whatever the service takes. */
  readonly model: string | undefined;
}

export class ApiClient {
  readonly url: string;
  readonly #exchange: Exchange;
  readonly #retrying: Retrying;
  readonly #signal: AbortSignal | undefined;

  /** `signal` ends requests that have none of their own. */
  constructor(endpoint: Endpoint, retrying: RetryingOptions, signal?: AbortSignal) {
    this.url = endpoint.url;
    this.#exchange = exchangeWith(endpoint);
    this.#retrying = new Retrying({
      policy: retrying.policy,
      onWait: (failure, delayMs) => {
        endpoint.onWait?.(failure, delayMs);
        retrying.onWait?.(failure, delayMs);
      },
    });
    this.#signal = signal;
  }

  async usage(signal?: AbortSignal): Promise<Usage> {
    return checked(usageSchema, await this.#send({ method: 'GET', path: '/v1/usage', signal }));
  }

  async listIndexes(): Promise<readonly Index[]> {
    return checked(indexListSchema, await this.#send({ method: 'GET', path: '/v1/indexes' })).data;
  }

  /** By identifier, or else by name. */
  async findIndex(nameOrId: string): Promise<Index | undefined> {
    const data = await this.listIndexes();
    return (
      data.find((index) => index.id === nameOrId.toLowerCase()) ??
      data.find((index) => index.name === nameOrId)
    );
  }

  async requireIndex(nameOrId: string): Promise<Index> {
    const index = await this.findIndex(nameOrId);
    if (index === undefined) {
      throw new CommandFailure('not_found', `there is no index ${JSON.stringify(nameOrId)} at ${this.url}`);
    }
    return index;
  }

  /** The index of this name, made if it is missing. */
  async ensureIndex({
    name,
    model,
  }: WantedIndex): Promise<{ readonly index: Index; readonly created: boolean }> {
    const existing = await this.findIndex(name);
    if (existing !== undefined) return { index: havingModel(existing, model), created: false };
    const [modelName, version] = model?.split('/', 2) ?? [];
    try {
      const answer = await this.#send({
        method: 'POST',
        path: '/v1/indexes',
        body: JSON.stringify({ name, model: modelName, model_version: version }),
      });
      return { index: checked(indexSchema, answer), created: true };
    } catch (error) {
      // A creation is not idempotent: one that lost its answer, or a rival's, shows as a duplicate name.
      const raced =
        error instanceof ApiFailure && error.status === 422 ? await this.findIndex(name) : undefined;
      if (raced === undefined) throw error;
      return { index: havingModel(raced, model), created: false };
    }
  }

  /** A new name, or that of the other index, which gets this one's. */
  async updateIndex(
    indexId: string,
    change: { readonly name: string } | { readonly swap_name_with: string },
  ): Promise<Index> {
    const answer = await this.#send({
      method: 'PATCH',
      path: `/v1/indexes/${pathSegment(indexId)}`,
      body: JSON.stringify(change),
    });
    return checked(indexSchema, answer);
  }

  async deleteIndex(indexId: string): Promise<void> {
    await this.#send({ method: 'DELETE', path: `/v1/indexes/${pathSegment(indexId)}` });
  }

  /** `documents` are JSON texts of document inputs. */
  async upsert(indexId: string, documents: readonly string[], signal: AbortSignal): Promise<UpsertAnswer> {
    const answer = await this.#send({
      method: 'POST',
      path: `/v1/indexes/${pathSegment(indexId)}/documents`,
      body: `{"documents":[${documents.join(',')}]}`,
      signal,
    });
    return checked(upsertSchema, answer);
  }

  /** `latencyMs` is that of the attempt that succeeded; `body` the whole answer as received. */
  async search(
    indexId: string,
    query: SearchQuery,
    signal?: AbortSignal,
  ): Promise<SearchAnswer & { readonly latencyMs: number; readonly body: unknown }> {
    const answer = await this.#send({
      method: 'POST',
      path: `/v1/indexes/${pathSegment(indexId)}/search`,
      body: JSON.stringify(query),
      signal,
    });
    return { ...checked(searchSchema, answer), latencyMs: answer.latencyMs, body: answer.body };
  }

  #send(request: ApiRequest): Promise<Answer> {
    const signal = request.signal ?? this.#signal;
    return this.#retrying.run(() => this.#exchange({ ...request, signal }), signal);
  }
}

/** The index, if it has the model that is wanted. */
function havingModel(index: Index, wanted: string | undefined): Index {
  const version = `${index.model}/${index.model_version}`;
  if (wanted === undefined || wanted === index.model || wanted === version) return index;
  throw new CommandFailure(
    'usage_error',
    `the index ${JSON.stringify(index.name)} has the model ${version} for ever: import under ${wanted} into another one`,
  );
}
