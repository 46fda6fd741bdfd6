/** The loop of a catalog thread that answers one request after the other. */
import type { MessagePort } from 'node:worker_threads';
import { assertInvariant, toFailure } from '../../../errors.ts';
import type { Connection } from '../connection.ts';
import { isDamage, toOperatingError } from '../connection.ts';
import type { Operations } from './thread-client.ts';
import type { ThreadEvent, ThreadMessage, ThreadRequest } from './thread-protocol.ts';

export interface ServedDatabase {
  /** Closed with the thread. */
  readonly connection: Connection;
  readonly operations: Operations;
}

export interface ThreadServer {
  readonly port: MessagePort;
  readonly database: ServedDatabase;
  /**
   * Opens the database again, with empty caches. A request that meets damage is run once more on it. If it fails again, the
   * file itself is damaged.
   */
  readonly reopen?: () => ServedDatabase;
  /** The event to send beside the reply when the file is damaged. */
  readonly onDamage?: (request: ThreadRequest, error: unknown) => ThreadEvent;
  /** Buffers of a value that are transferred instead of copied. */
  readonly transferred?: (operation: string, value: unknown) => ArrayBuffer[];
}

export function serveRequests({ port, reopen, onDamage, transferred, ...given }: ThreadServer): void {
  let { database } = given;
  port.on('message', (message: ThreadMessage) => {
    if (message.kind === 'finish') {
      database.connection.close();
      port.close();
    } else {
      answer(message);
    }
  });
  send({ kind: 'opened' });

  function answer(request: ThreadRequest): void {
    const { number, operation } = request;
    try {
      const value = run(request);
      send({ kind: 'replies', replies: [{ number, ok: true, value }] }, transferred?.(operation, value));
    } catch (error) {
      if (isDamage(error) && onDamage !== undefined) send(onDamage(request, error));
      const failure = toFailure(toOperatingError(error));
      send({ kind: 'replies', replies: [{ number, ok: false, failure }] });
    }
  }

  function run(request: ThreadRequest): unknown {
    try {
      return runOnce(request);
    } catch (error) {
      if (!isDamage(error) || reopen === undefined) throw error;
      const reopened = reopen();
      database.connection.close();
      database = reopened;
      return runOnce(request);
    }
  }

  function runOnce({ operation, input }: ThreadRequest): unknown {
    const called = database.operations[operation];
    assertInvariant(called !== undefined, `the thread knows no ${operation}`);
    return called(...input);
  }

  function send(event: ThreadEvent, transfer: ArrayBuffer[] = []): void {
    port.postMessage(event, transfer);
  }
}
