/** Sends requests whose clients hang up at a chosen moment. */
import { request } from 'node:http';

import type { Client } from '../running/client.ts';
import { pause } from '../running/eventually.ts';

export type Moment =
  /** The client hangs up some milliseconds after the whole request was sent. */
  | { readonly kind: 'waiting'; readonly afterMs: number }
  /** The client hangs up when half of the body is sent. */
  | { readonly kind: 'sending' }
  /** The client hangs up when the first bytes of the answer have come. */
  | { readonly kind: 'reading' };

/** Sends the request and breaks its connection. Resolves to whether the answer had begun by then. */
export async function abandon(client: Client, path: string, body: unknown, moment: Moment): Promise<boolean> {
  const text = JSON.stringify(body);
  const closed = Promise.withResolvers<boolean>();
  let answered = false;
  const outgoing = request(`${client.url}${path}`, {
    method: 'POST',
    agent: false,
    headers: {
      authorization: `Bearer ${client.key}`,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
    },
  });
  outgoing.on('response', (response) => {
    answered = true;
    // The response fails, because its connection is broken within the body.
    response.on('error', () => undefined);
    if (moment.kind === 'reading') outgoing.destroy();
    else response.resume();
  });
  outgoing.on('error', () => undefined);
  outgoing.on('close', () => closed.resolve(answered));
  switch (moment.kind) {
    case 'sending':
      outgoing.write(text.slice(0, text.length / 2), () => outgoing.destroy());
      break;
    case 'waiting':
      outgoing.end(text);
      await pause(moment.afterMs);
      outgoing.destroy();
      break;
    case 'reading':
      outgoing.end(text);
  }
  return closed.promise;
}
