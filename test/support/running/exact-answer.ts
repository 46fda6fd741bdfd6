/** Gets answers with everything that a client can see of them, and the time that they took. */
import { Agent, request } from 'node:http';

export interface ExactAnswer {
  readonly status: number;
  /** Names and values of the headers, unchanged and in their order. */
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string;
  readonly milliseconds: number;
}

export interface ExactRequest {
  readonly url: string;
  readonly method: string;
  readonly key?: string | undefined;
  /** The body, sent unchanged. */
  readonly body?: string | undefined;
}

/** The connection ended in the middle of an answer. */
export class CutAnswer extends Error {
  override readonly name = 'CutAnswer';

  constructor(cause: unknown) {
    super('an answer was cut', { cause });
  }
}

/** Sends requests over one connection, which stays open. */
export function openExact(): {
  send(sent: ExactRequest): Promise<ExactAnswer>;
  [Symbol.dispose](): void;
} {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  return {
    send: ({ url, method, key, body }) =>
      new Promise((resolve, reject) => {
        const startedAt = performance.now();
        const sent = request(url, {
          agent,
          method,
          headers: {
            ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
            ...(body === undefined
              ? {}
              : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
          },
        });
        sent.once('error', reject);
        sent.once('response', (response) => {
          const parts: Buffer[] = [];
          response.on('data', (part: Buffer) => parts.push(part));
          response.once('error', (cause) => reject(new CutAnswer(cause)));
          response.once('end', () => {
            const raw = response.rawHeaders;
            resolve({
              status: response.statusCode ?? 0,
              headers: Array.from({ length: raw.length / 2 }, (_, n) => [raw[2 * n]!, raw[2 * n + 1]!]),
              body: Buffer.concat(parts).toString('latin1'),
              milliseconds: performance.now() - startedAt,
            });
          });
        });
        sent.end(body);
      }),
    [Symbol.dispose]: () => agent.destroy(),
  };
}

/** Headers that differ between any two answers: the request id, the clock, and the rate that is left. */
const ownOfEach = /^(x-request-id|date|ratelimit-.*)$/i;

/** The parts of an answer by which a client could tell it from another. */
export function visible({ status, headers, body }: ExactAnswer): object {
  const seen = headers.map(([name, value]) => (ownOfEach.test(name) ? [name] : [name, value]));
  return { status, headers: seen, body };
}
