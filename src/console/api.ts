/** Requests of the page to `/console`. The session is in a cookie that scripts cannot read. */
import type { Index, IndexList, Ranked, UsageDays, UsageOfDay, UsageSummary } from '@maxsimd/client';

export type { Index, Ranked, UsageOfDay, UsageSummary };
export type Result = Ranked['results'][number];

export interface Stage {
  readonly name: string;
  readonly milliseconds: number;
}

export interface Answer<Body> {
  readonly body: Body;
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

/** Start and end of each token in its text; equal for special tokens. */
export type Spans = readonly (readonly [number, number])[];

export interface LocatedTokens {
  readonly query: Spans | null;
  readonly document: Spans | null;
}

export class ApiFailure extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** `onSignedOut` is called when the session has ended. */
export class Api {
  readonly #onSignedOut: () => void;

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

  indexes(): Promise<Answer<IndexList>> {
    return this.#get('indexes');
  }

  index(id: string): Promise<Answer<Index>> {
    return this.#get(`indexes/${id}`);
  }

  describe(id: string): Promise<Answer<IndexDescription>> {
    return this.#get(`indexes/${id}/description`);
  }

  usage(): Promise<Answer<UsageSummary>> {
    return this.#get('usage');
  }

  usageDays(from: string): Promise<Answer<UsageDays>> {
    return this.#get(`usage/days?from=${from}`);
  }

  search(id: string, body: Readonly<Record<string, unknown>>): Promise<Answer<Ranked>> {
    return this.#post(`indexes/${id}/search`, body);
  }

  score(body: Readonly<Record<string, unknown>>): Promise<Answer<Ranked>> {
    return this.#post('score', body);
  }

  tokens(body: Readonly<Record<string, unknown>>): Promise<Answer<LocatedTokens>> {
    return this.#post('tokens', body);
  }

  #get<Body>(path: string): Promise<Answer<Body>> {
    return this.#ask(path, {});
  }

  #post<Body>(path: string, body: Readonly<Record<string, unknown>>): Promise<Answer<Body>> {
    return this.#ask(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  }

  async #ask<Body>(path: string, init: RequestInit): Promise<Answer<Body>> {
    const startedAt = performance.now();
    try {
      const response = await send(`v1/${path}`, init);
      const body = (await response.json()) as Body;
      const stages = stagesOf(response.headers.get('server-timing') ?? '');
      return { body, stages, milliseconds: performance.now() - startedAt };
    } catch (error) {
      if (error instanceof ApiFailure && error.status === 401) this.#onSignedOut();
      throw error;
    }
  }
}

async function send(path: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(`/console/${path}`, init);
  } catch {
    throw new ApiFailure(0, 'the service cannot be reached');
  }
  if (response.ok) return response;
  throw new ApiFailure(response.status, await messageOf(response));
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
