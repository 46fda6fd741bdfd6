import { fetchFor } from './connection.ts';
import { ApiError, MaxsimdError } from './errors.ts';
import type { RequestError } from './errors.ts';
import { Import } from './import/import.ts';
import type { ImportCalls, ImportDocument, ImportOptions, ImportReport } from './import/import.ts';
import { timeText } from './import/request-part.ts';
import { upsertDeadlineMs } from './retry.ts';
import { Transport, checkedKey, checkedUrl, checkedUserAgent } from './transport.ts';
import type { ApiRequest, RequestOptions } from './transport.ts';
import type {
  Activity,
  CreateIndex,
  DeleteDocuments,
  Deleted,
  DeletedDocuments,
  Document,
  DocumentCount,
  DocumentList,
  Facets,
  FacetsRequest,
  Index,
  IndexList,
  ListDocuments,
  QueryAnswers,
  QueryItem,
  Ranked,
  Readiness,
  Score,
  Search,
  StoredDocument,
  UpsertResult,
  UsageDays,
  UsageOfDay,
  UsageSummary,
} from './types.ts';
import { version } from './version.ts';

export interface MaxsimdOptions {
  /** Address of the service. It may have a path (behind a proxy). By default MAXSIMD_URL of the environment. */
  readonly url?: string | undefined;
  /** By default MAXSIMD_API_KEY of the environment. */
  readonly apiKey?: string | undefined;
  /** Time limit of one attempt. The default, 150 s, is above every deadline of the service. */
  readonly timeoutMs?: number;
  /** Time limit of all attempts of a request together, with the waits; 0 = one attempt. By default 120 s. */
  readonly retryMsMax?: number;
  /** The same limit while this client was never connected. By default `retryMsMax`, or 5 s if that is not given. */
  readonly unreachedMsMax?: number;
  /**
   * Waits as long as the rate and concurrency limits ask (429), even beyond `retryMsMax`. Use it if no user waits.
   * `import` always does.
   */
  readonly waitsForLimits?: boolean;
  /** Called before each wait for another attempt. */
  readonly onRetry?: (error: RequestError, delayMs: number) => void;
  /** Comes before the name of the client. */
  readonly userAgent?: string;
  /** Replaces `JSON.parse` for answers, because metadata may have numbers that a double does not hold. */
  readonly parse?: (json: string) => unknown;
  /** Replaces the client's own fetch, which uses the proxies that HTTPS_PROXY, HTTP_PROXY and NO_PROXY name. */
  readonly fetch?: typeof fetch;
}

export interface UpsertOptions extends RequestOptions {
  /** A string has the form of RFC 3339. Null is the same as none. */
  readonly expiresAt?: Date | string | null;
}

/** Documents that `where` matches; without it, all of them. Their metadata have these fields alone; without `fields`, all. */
export interface ListOptions extends RequestOptions, Pick<ListDocuments, 'where' | 'fields'> {}

/**
 * The service, for one API key. An index is given by its id, or as `name:` and its name, such as `name:handbook`: each request
 * finds the index that has the name then. An import, and a list of documents, stay with the index that they began with.
 *
 * The client repeats requests that are safe to repeat while the service is unavailable; see `retry.ts`. Methods reject with an `ApiError`, a `ConnectionError`, or the reason of the caller's signal.
 */
export class Maxsimd {
  /** The given address, without a slash at the end. */
  readonly url: string;
  readonly #transport: Transport;
  /** Half of the time that an upsert can take. */
  readonly #lateAfterMs: number;

  constructor(options: MaxsimdOptions = {}) {
    if (isBrowser())
      throw new MaxsimdError('an API key must not reach a browser: call the service from your backend');
    const own = `maxsimd-typescript/${version} node/${process.versions.node}`;
    this.url = checkedUrl(given('url', options.url, 'MAXSIMD_URL'));
    const timeoutMs = options.timeoutMs ?? 150_000;
    this.#lateAfterMs = Math.min(upsertDeadlineMs, timeoutMs) / 2;
    this.#transport = new Transport({
      url: this.url,
      apiKey: checkedKey(given('apiKey', options.apiKey, 'MAXSIMD_API_KEY')),
      userAgent: options.userAgent === undefined ? own : `${checkedUserAgent(options.userAgent)} ${own}`,
      timeoutMs,
      retryMsMax: options.retryMsMax,
      unreachedMsMax: options.unreachedMsMax,
      isPatient: options.waitsForLimits ?? false,
      parse: options.parse ?? JSON.parse,
      fetch: options.fetch ?? fetchFor(this.url),
      onRetry: options.onRetry,
    });
  }

  /**
   * Sent again after 503 (a model is being loaded). Not sent again after a lost answer, because the name may be taken then,
   * unless `if_exists` is `return`.
   */
  createIndex(body: CreateIndex, options?: RequestOptions): Promise<Index> {
    const isSafe = body.if_exists === 'return';
    return this.#transport.send(
      { method: 'POST', path: ['v1', 'indexes'], body, isSafe, isUnique: true },
      options,
    );
  }

  /** All indexes, oldest first. */
  async listIndexes(options?: RequestOptions): Promise<readonly Index[]> {
    const { data } = await this.#get<IndexList>(['v1', 'indexes'], options);
    return data;
  }

  getIndex(indexId: string, options?: RequestOptions): Promise<Index> {
    return this.#get(indexPath(indexId), options);
  }

  /** By its old name an index is renamed once, because a second request would not find it. */
  renameIndex(indexId: string, name: string, options?: RequestOptions): Promise<Index> {
    return this.#patch(indexPath(indexId), { name }, !isName(indexId), options);
  }

  /** Exchanges the names of two indexes, in one step. Sent once, because a second request would undo it. */
  swapIndexNames(indexId: string, otherId: string, options?: RequestOptions): Promise<Index> {
    return this.#patch(indexPath(indexId), { swap_name_with: otherId }, false, options);
  }

  /** The metadata fields that words of a query match, in place of those of before; none for an empty list. */
  setMatchFields(indexId: string, matchFields: readonly string[], options?: RequestOptions): Promise<Index> {
    return this.#patch(indexPath(indexId), { match_fields: matchFields }, true, options);
  }

  /** Sent once, because a second request would be refused as not found. */
  deleteIndex(indexId: string, options?: RequestOptions): Promise<Deleted> {
    return this.#transport.send({ method: 'DELETE', path: indexPath(indexId), isSafe: false }, options);
  }

  /**
   * Stores 1 to 50 documents. Look at `failed`. `import` takes any number. From `expiresAt` on the documents are in no answer;
   * without it they do not expire.
   */
  async upsert(
    indexId: string,
    documents: readonly Document[],
    { expiresAt, ...options }: UpsertOptions = {},
  ): Promise<UpsertResult> {
    const path = indexPath(indexId, 'documents');
    const query = expiryQuery(expiresAt);
    return this.#transport.send({ method: 'POST', path, body: { documents }, query, isSafe: true }, options);
  }

  /**
   * Stores any number of documents. Documents of one expiry that follow each other share requests. Rejects with an `ImportError`
   * that has the report so far.
   */
  import(
    indexId: string,
    documents: Iterable<ImportDocument> | AsyncIterable<ImportDocument>,
    options: ImportOptions = {},
  ): Promise<ImportReport> {
    let known: Promise<string> | undefined;
    const id = (signal: AbortSignal): Promise<string> => (known ??= this.#idOf(indexId, { signal }, true));
    const calls: ImportCalls = {
      upsert: async ({ json, expiresAt }, signal, onConcurrencyLimit) =>
        this.#transport.send(
          {
            method: 'POST',
            path: indexPath(await id(signal), 'documents'),
            json,
            query: expiryQuery(expiresAt),
            isSafe: true,
            isPatient: true,
            lateAfterMs: this.#lateAfterMs,
            onRetry: (error) => {
              if (error instanceof ApiError && error.code === 'concurrency_limit_exceeded')
                onConcurrencyLimit();
            },
          },
          { signal },
        ),
      remainingDocuments: async (signal) => (await this.usage({ signal })).remaining.documents,
      storedParts: async (signal) =>
        this.listDocuments(await id(signal), { fields: ['part_of', 'part'], signal }),
      deleteDocument: async (docId, signal) => this.deleteDocument(await id(signal), docId, { signal }),
    };
    return new Import(calls, options).run(documents);
  }

  /** Documents of the index, sorted by `doc_id`. Pages are fetched as they are needed. */
  async *listDocuments(
    indexId: string,
    { where, fields, ...options }: ListOptions = {},
  ): AsyncGenerator<StoredDocument> {
    const isWhole = where === undefined && fields === undefined;
    const id = await this.#idOf(indexId, options);
    let after: string | null = null;
    do {
      const cursor = after === null ? {} : { cursor: after };
      const page: DocumentList = isWhole
        ? await this.#get(indexPath(id, 'documents'), options, { limit: '1000', ...cursor })
        : await this.#post(
            indexPath(id, 'documents', 'list'),
            { where, fields, limit: 1000, ...cursor },
            options,
          );
      yield* page.data;
      after = page.next_cursor;
    } while (after !== null);
  }

  getDocument(indexId: string, docId: string, options?: RequestOptions): Promise<StoredDocument> {
    return this.#get(indexPath(indexId, 'documents', docId), options);
  }

  countDocuments(indexId: string, options?: RequestOptions): Promise<DocumentCount> {
    return this.#get(indexPath(indexId, 'count'), options);
  }

  /** Counts the documents that match by the values of metadata fields, the most frequent first. */
  facets(indexId: string, body: FacetsRequest, options?: RequestOptions): Promise<Facets> {
    return this.#post(indexPath(indexId, 'facets'), body, options);
  }

  /** Replaces the whole metadata object. The text is not encoded again. */
  updateMetadata(
    indexId: string,
    docId: string,
    metadata: StoredDocument['metadata'],
    options?: RequestOptions,
  ): Promise<StoredDocument> {
    return this.#patch(indexPath(indexId, 'documents', docId), { metadata }, true, options);
  }

  /**
   * Merges fields into the stored metadata (RFC 7396): null removes a field, an object merges into the stored object, every
   * other value replaces. Merges at once all count. The text is not encoded again.
   */
  mergeMetadata(
    indexId: string,
    docId: string,
    metadata: StoredDocument['metadata'],
    options?: RequestOptions,
  ): Promise<StoredDocument> {
    const body = { metadata_merge: metadata };
    return this.#patch(indexPath(indexId, 'documents', docId), body, true, options);
  }

  /** The document is in no answer from then on. Null: it does not expire any more. */
  async setExpiry(
    indexId: string,
    docId: string,
    expiresAt: Date | string | null,
    options?: RequestOptions,
  ): Promise<StoredDocument> {
    const body = { expires_at: expiresAt === null ? null : timeText(expiresAt) };
    return this.#patch(indexPath(indexId, 'documents', docId), body, true, options);
  }

  /** `deleted` may be false although the document existed, if the answer to a first attempt was lost. */
  deleteDocument(indexId: string, docId: string, options?: RequestOptions): Promise<Deleted> {
    const path = indexPath(indexId, 'documents', docId);
    return this.#transport.send({ method: 'DELETE', path, isSafe: true }, options);
  }

  /**
   * Deletes at most `limit` matching documents. Call again while `more` is true. `deleted` may be too low if the answer to
   * a first attempt was lost. With `dry_run` they are counted in `matching`, and stay.
   */
  deleteDocuments(
    indexId: string,
    body: DeleteDocuments,
    options?: RequestOptions,
  ): Promise<DeletedDocuments> {
    return this.#post(indexPath(indexId, 'documents', 'delete'), body, options);
  }

  search(indexId: string, body: Search, options?: RequestOptions): Promise<Ranked> {
    return this.#post(indexPath(indexId, 'search'), body, options);
  }

  /** 1 to 32 searches at once, on one snapshot of the index. */
  query(indexId: string, queries: readonly QueryItem[], options?: RequestOptions): Promise<QueryAnswers> {
    return this.#post(indexPath(indexId, 'query'), { queries }, options);
  }

  /** Ranks the given documents. Nothing is stored. */
  score(body: Score, options?: RequestOptions): Promise<Ranked> {
    return this.#post(['v1', 'score'], body, options);
  }

  usage(options?: RequestOptions): Promise<UsageSummary> {
    return this.#get(['v1', 'usage'], options);
  }

  /** Usage by day, in UTC, from `from` to `to` (`YYYY-MM-DD`, included). By default this month. Unused days are left out. */
  async usageDays(
    range: { readonly from?: string; readonly to?: string } = {},
    options?: RequestOptions,
  ): Promise<readonly UsageOfDay[]> {
    const days: UsageDays = await this.#get(['v1', 'usage', 'days'], options, { ...range });
    return days.data;
  }

  /** The searches of the last 60 minutes, by index and minute, as the node that answers has counted them. */
  activity(options?: RequestOptions): Promise<Activity> {
    return this.#get(['v1', 'activity'], options);
  }

  /** Rejects with a 503 while the service is not ready. Sent once. */
  readiness(options?: RequestOptions): Promise<Readiness> {
    return this.#transport.send({ method: 'GET', path: ['readyz'], isSafe: false }, options);
  }

  /** Calls any route, also one without a method here, such as `['admin', 'v1', 'tenants']` at the port of the admin API. */
  request<Answer>(request: ApiRequest, options?: RequestOptions): Promise<Answer> {
    return this.#transport.send(request, options);
  }

  /** For work of several requests, between which a name may go to another index. */
  async #idOf(indexId: string, options: RequestOptions, isPatient?: boolean): Promise<string> {
    if (!isName(indexId)) return indexId;
    const request = {
      method: 'GET',
      path: indexPath(indexId),
      isSafe: true,
      ...(isPatient && { isPatient }),
    } as const;
    return (await this.#transport.send<Index>(request, options)).id;
  }

  #get<Answer>(
    path: readonly string[],
    options: RequestOptions | undefined,
    query?: Readonly<Record<string, string>>,
  ): Promise<Answer> {
    return this.#transport.send({ method: 'GET', path, query, isSafe: true }, options);
  }

  #patch<Answer>(
    path: readonly string[],
    body: object,
    isSafe: boolean,
    options: RequestOptions | undefined,
  ): Promise<Answer> {
    return this.#transport.send({ method: 'PATCH', path, body, isSafe }, options);
  }

  #post<Answer>(path: readonly string[], body: object, options: RequestOptions | undefined): Promise<Answer> {
    return this.#transport.send({ method: 'POST', path, body, isSafe: true }, options);
  }
}

function expiryQuery(expiresAt: Date | string | null | undefined): ApiRequest['query'] {
  return expiresAt === undefined || expiresAt === null ? undefined : { expires_at: timeText(expiresAt) };
}

function isName(indexId: string): boolean {
  return indexId.startsWith('name:');
}

function indexPath(indexId: string, ...rest: readonly string[]): readonly string[] {
  return ['v1', 'indexes', indexId, ...rest];
}

/**
 * Every visitor of a page could read its API key. In Node there is none, although environments of tests, such as jsdom and
 * happy-dom, add a document.
 */
function isBrowser(): boolean {
  const { process: own }: { process?: Partial<NodeJS.Process> } = globalThis;
  const hasPage = 'document' in globalThis && own?.versions?.node === undefined;
  return hasPage || 'WorkerGlobalScope' in globalThis;
}

/** The value, or that of the environment. */
function given(name: string, value: string | undefined, variable: string): string {
  const found = value ?? process.env[variable];
  if (found === undefined || found === '')
    throw new MaxsimdError(`\`${name}\` is missing: pass it, or set ${variable}`);
  return found;
}
