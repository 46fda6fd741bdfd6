/** Requests of the page to `/console`. The session is in a cookie that scripts cannot read. */
import type {
  Activity,
  DeletedDocuments,
  DocumentCount,
  DocumentFailure,
  DocumentList,
  Facets,
  Index,
  IndexList,
  Ranked,
  StoredDocument,
  UpsertResult,
  UsageDays,
  UsageOfDay,
  UsageSummary,
} from '@maxsimd/client';

export type { Activity, DocumentFailure, Index, Ranked, StoredDocument, UsageOfDay, UsageSummary };
export type Result = Ranked['results'][number];
export type JsonObject = Readonly<Record<string, unknown>>;

export interface Stage {
  readonly name: string;
  readonly milliseconds: number;
}

export interface Answer<Body> {
  readonly body: Body;
  /** As it came. A number of a customer may have more digits than a number of this language. */
  readonly text: string;
  readonly stages: readonly Stage[];
  /** Until the answer arrived, the network included. */
  readonly milliseconds: number;
}

export interface Segment {
  readonly state: 'active' | 'sealed';
  readonly documents: number;
  readonly records: number;
  readonly chunks: number;
  readonly token_vectors: number;
  readonly bytes: number;
  readonly derived_bytes: number;
  readonly centroids: number;
}

export interface IndexDescription {
  readonly documents: number;
  readonly segments: readonly Segment[];
}

export interface IndexContents {
  readonly id: string;
  readonly documents: number;
  readonly chunks: number;
  readonly bytes?: number;
}

/** Start and end of each token in its text; equal for special tokens. */
export type Spans = readonly (readonly [number, number])[];

export interface LocatedTokens {
  readonly query: Spans | null;
  readonly document: Spans | null;
}

export class ApiFailure extends Error {
  readonly status: number;
  /** For a limit: the seconds until the next request fits. */
  readonly retryAfter: number | undefined;

  constructor(status: number, message: string, retryAfter?: number) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/** Sends one request at a time, because a tenant may have few at once. `onSignedOut` is called when the session has ended. */
export class Api {
  readonly #onSignedOut: () => void;
  #last: Promise<unknown> = Promise.resolve();

  constructor(onSignedOut: () => void) {
    this.#onSignedOut = onSignedOut;
  }

  async signIn(apiKey: string): Promise<void> {
    await send('session', { method: 'POST', headers: { authorization: `Bearer ${apiKey}` } });
  }

  async signOut(): Promise<void> {
    await send('session', { method: 'DELETE' });
    this.#onSignedOut();
  }

  session(): Promise<Answer<{ readonly access: 'full' | 'read' }>> {
    return this.#ask('GET', 'session');
  }

  indexes(): Promise<Answer<IndexList>> {
    return this.#ask('GET', 'indexes');
  }

  contents(): Promise<Answer<{ readonly data: readonly IndexContents[] }>> {
    return this.#ask('GET', 'contents');
  }

  activity(): Promise<Answer<Activity>> {
    return this.#ask('GET', 'activity');
  }

  createIndex(body: JsonObject): Promise<Answer<Index>> {
    return this.#ask('POST', 'indexes', body);
  }

  index(id: string): Promise<Answer<Index>> {
    return this.#ask('GET', `indexes/${id}`);
  }

  updateIndex(id: string, body: JsonObject): Promise<Answer<Index>> {
    return this.#ask('PATCH', `indexes/${id}`, body);
  }

  deleteIndex(id: string): Promise<Answer<unknown>> {
    return this.#ask('DELETE', `indexes/${id}`);
  }

  count(id: string): Promise<Answer<DocumentCount>> {
    return this.#ask('GET', `indexes/${id}/count`);
  }

  describe(id: string): Promise<Answer<IndexDescription>> {
    return this.#ask('GET', `indexes/${id}/description`);
  }

  usage(): Promise<Answer<UsageSummary>> {
    return this.#ask('GET', 'usage');
  }

  usageDays(from: string): Promise<Answer<UsageDays>> {
    return this.#ask('GET', `usage/days?from=${from}`);
  }

  search(id: string, body: JsonObject): Promise<Answer<Ranked>> {
    return this.#ask('POST', `indexes/${id}/search`, body);
  }

  score(body: JsonObject): Promise<Answer<Ranked>> {
    return this.#ask('POST', 'score', body);
  }

  tokens(body: JsonObject): Promise<Answer<LocatedTokens>> {
    return this.#ask('POST', 'tokens', body);
  }

  documents(id: string, limit: number, cursor?: string): Promise<Answer<DocumentList>> {
    const after = cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    return this.#ask('GET', `indexes/${id}/documents?limit=${limit}${after}`);
  }

  document(id: string, docId: string): Promise<Answer<StoredDocument>> {
    return this.#ask('GET', documentPath(id, docId));
  }

  /** `metadata`: JSON text, sent as it is. */
  changeMetadata(id: string, docId: string, metadata: string): Promise<Answer<StoredDocument>> {
    return this.#ask('PATCH', documentPath(id, docId), `{"metadata":${metadata}}`);
  }

  deleteDocument(id: string, docId: string): Promise<Answer<unknown>> {
    return this.#ask('DELETE', documentPath(id, docId));
  }

  deleteMatching(id: string, where: JsonObject): Promise<Answer<DeletedDocuments>> {
    return this.#ask('POST', `indexes/${id}/documents/delete`, { where });
  }

  facets(id: string, body: JsonObject): Promise<Answer<Facets>> {
    return this.#ask('POST', `indexes/${id}/facets`, body);
  }

  /** `documents`: JSON texts, sent as they are. */
  upsert(id: string, documents: readonly string[]): Promise<Answer<UpsertResult>> {
    return this.#ask('POST', `indexes/${id}/documents`, `{"documents":[${documents.join(',')}]}`);
  }

  #ask<Body>(method: string, path: string, body?: JsonObject | string): Promise<Answer<Body>> {
    const asked = this.#last.then(() => this.#send<Body>(method, path, body));
    this.#last = asked.catch(() => undefined);
    return asked;
  }

  async #send<Body>(method: string, path: string, body?: JsonObject | string): Promise<Answer<Body>> {
    const startedAt = performance.now();
    const json = typeof body === 'string' ? body : JSON.stringify(body);
    const content = body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: json };
    try {
      const response = await send(`v1/${path}`, { method, ...content });
      const text = await response.text();
      const stages = stagesOf(response.headers.get('server-timing') ?? '');
      const elapsed = performance.now() - startedAt;
      return { body: JSON.parse(text) as Body, text, stages, milliseconds: elapsed };
    } catch (error) {
      if (error instanceof ApiFailure && error.status === 401) this.#onSignedOut();
      throw error;
    }
  }
}

function documentPath(indexId: string, docId: string): string {
  return `indexes/${indexId}/documents/${encodeURIComponent(docId)}`;
}

async function send(path: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(`/console/${path}`, init);
  } catch {
    throw new ApiFailure(0, 'the service cannot be reached');
  }
  if (response.ok) return response;
  const retryAfter = response.headers.get('retry-after');
  throw new ApiFailure(
    response.status,
    await messageOf(response),
    retryAfter === null ? undefined : Number(retryAfter),
  );
}

async function messageOf(response: Response): Promise<string> {
  try {
    const { error } = (await response.json()) as {
      error: { message: string; issues?: { path: string; message: string }[] };
    };
    const issues = (error.issues ?? []).map(({ path, message }) =>
      path === '' ? message : `${path}: ${message}`,
    );
    // The message repeats the first issue.
    return [...new Set([error.message, ...issues])].join('; ');
  } catch {
    return `the service answered ${response.status}`;
  }
}

function stagesOf(header: string): readonly Stage[] {
  return [...header.matchAll(/([\w-]+);dur=([\d.]+)/g)].map(([, name = '', milliseconds]) => ({
    name,
    milliseconds: Number(milliseconds),
  }));
}
