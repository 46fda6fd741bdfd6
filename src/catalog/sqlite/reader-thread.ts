/** Worker entry: reads that may wait for the disk, or walk a whole index, away from the event loop. */
import { parentPort, workerData } from 'node:worker_threads';
import { assertInvariant } from '../../errors.ts';
import type { IndexState } from '../contract.ts';
import { openReader, toOperatingError } from './connection.ts';
import { readOperations } from './read-operations.ts';
import { toFailure } from './thread-protocol.ts';
import type { ThreadEvent, ThreadMessage, ThreadRequest } from './thread-protocol.ts';

export interface ReaderThreadData {
  readonly path: string;
}

assertInvariant(parentPort !== null, 'the reader runs in a worker thread');
const port = parentPort;
const connection = openReader((workerData as ReaderThreadData).path);
const operations: Readonly<Record<string, (input: never) => unknown>> = readOperations(connection);

port.on('message', (message: ThreadMessage) => {
  if (message.kind === 'finish') {
    connection.close();
    port.close();
  } else {
    answer(message);
  }
});

function answer({ number, operation, input }: ThreadRequest): void {
  let event: ThreadEvent;
  let transfer: ArrayBuffer[] = [];
  try {
    const run = operations[operation];
    assertInvariant(run !== undefined, `the reader knows no ${operation}`);
    const value = run(input as never);
    if (operation === 'loadIndexState') transfer = buffersOf(value as IndexState);
    event = { kind: 'replies', replies: [{ number, ok: true, value }] };
  } catch (error) {
    const failure = toFailure(toOperatingError(error));
    event = { kind: 'replies', replies: [{ number, ok: false, failure }] };
  }
  port.postMessage(event, transfer);
}

function buffersOf(state: IndexState): ArrayBuffer[] {
  return Object.values(state.versions).map(
    (column: Float64Array | Uint32Array) => column.buffer as ArrayBuffer,
  );
}
