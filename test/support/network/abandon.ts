/** Clients that hang up at a moment of their own choosing. */
import { request } from 'node:http';

import type { Client } from '../running/client.ts';
import { pause } from '../running/eventually.ts';

export type Moment =
  /** Some milliseconds after the whole request was sent. */
  | { readonly kind: 'waiting'; readonly afterMs: number }
  /** With half of the body sent. */
  | { readonly kind: 'sending' }
  /** With the first bytes of the answer. */
  | { readonly kind: 'reading' };

/** Sends the request and breaks its connection; resolves when it is broken, to whether the answer had begun. */
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
    // Destroyed in the middle of its body.
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
