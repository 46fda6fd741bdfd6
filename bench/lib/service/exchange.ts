/** Sends one HTTP request over the caller's agent. */
import type * as http from 'node:http';
import * as https from 'node:https';
import { request as plainRequest } from 'node:http';

export interface Exchange {
  readonly agent: http.Agent;
  readonly url: URL;
  readonly apiKey: string;
  /** A POST of JSON; a GET where there is none. */
  readonly body?: string | Buffer | undefined;
  readonly timeoutMs?: number;
}

/** Status and text of the answer; status 0 = none. The server may answer and close before it has read everything. */
export function exchange({ agent, url, apiKey, body, timeoutMs }: Exchange): Promise<{
  readonly status: number;
  readonly text: string;
}> {
  return new Promise((resolve) => {
    const none = { status: 0, text: '' };
    const request = (url.protocol === 'https:' ? https.request : plainRequest)(
      url,
      {
        agent,
        method: body === undefined ? 'GET' : 'POST',
        ...(timeoutMs === undefined ? {} : { timeout: timeoutMs }),
        headers: {
          authorization: `Bearer ${apiKey}`,
          'content-type': 'application/json',
          ...(body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }),
        },
      },
      (response) => {
        const parts: Buffer[] = [];
        response.on('data', (part: Buffer) => parts.push(part));
        response.once('error', () => resolve(none));
        response.once('end', () =>
          resolve({ status: response.statusCode ?? 0, text: Buffer.concat(parts).toString() }),
        );
      },
    );
    request.once('timeout', () => request.destroy());
    request.on('error', () => resolve(none));
    request.end(body);
  });
}
