/** Requests of the page to where it came from. The session is in a cookie that scripts cannot read. */

import type { JsonObject } from './parts/json-object.ts';

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

/** Called when there is no session. `reason`: why a session ended that its owner did not end. */
export type OnSignedOut = (reason?: string) => void;

/** Sends one request at a time, because a tenant may have few at once. */
export class Connection {
  readonly #onSignedOut: OnSignedOut;
  #last: Promise<unknown> = Promise.resolve();

  constructor(onSignedOut: OnSignedOut) {
    this.#onSignedOut = onSignedOut;
  }

  async signIn(key: string): Promise<void> {
    await send('session', { method: 'POST', headers: { authorization: `Bearer ${key}` } });
    visit.begin();
  }

  async signOut(): Promise<void> {
    await send('session', { method: 'DELETE' });
    visit.end();
    this.#onSignedOut();
  }

  ask<Body>(method: string, path: string, body?: JsonObject | string): Promise<Answer<Body>> {
    const asked = this.#last.then(() => patiently(() => this.#send<Body>(method, path, body)));
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
      if (error instanceof ApiFailure && error.status === 401)
        this.#onSignedOut(visit.end() ? error.message : undefined);
      throw error;
    }
  }
}

/** A longer wait is for the person to decide. */
const patientSeconds = 2;
const attemptsMax = 5;

/** Where the page is, with a slash at its end. A proxy may have put a path before `/console`. */
const base = location.pathname.replace(/\/?$/, '/');
/** The address of the service for this browser. */
export const serviceUrl = new URL('..', location.origin + base).href.replace(/\/$/, '');

/**
 * Whether a person has signed in here. The page cannot see its session, and the service refuses a visitor without one like a
 * visitor whose session has ended.
 */
const visit = {
  place: `maxsimd.visit.${base}`,
  begin(): void {
    try {
      localStorage.setItem(this.place, 'signed in');
    } catch {
      // A browser that keeps nothing shows no reason.
    }
  },
  /** Returns whether it had begun. */
  end(): boolean {
    try {
      const hadBegun = localStorage.getItem(this.place) !== null;
      localStorage.removeItem(this.place);
      return hadBegun;
    } catch {
      return false;
    }
  },
};

async function send(path: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(base + path, init);
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

/** Other programs of the tenant may have all its concurrent requests for a moment. */
async function patiently<Result>(attempt: () => Promise<Result>): Promise<Result> {
  for (let attempts = 1; ; attempts += 1) {
    try {
      return await attempt();
    } catch (error) {
      const seconds = error instanceof ApiFailure ? error.retryAfter : undefined;
      if (seconds === undefined || seconds > patientSeconds || attempts === attemptsMax) throw error;
      await new Promise((resolve) => setTimeout(resolve, 1_000 * seconds));
    }
  }
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
