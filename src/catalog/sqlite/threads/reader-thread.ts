/**
 * Entry of a worker thread: runs reads that may wait for the disk, or go through a whole index, away from the event loop.
 * It also reports an index whose rows are damaged.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { assertInvariant, toFailure } from '../../../errors.ts';
import type { IndexState } from '../../../contracts/index-state.ts';
import { openReader } from '../connection.ts';
import { readOperations } from '../reads/read-operations.ts';
import { serveRequests, type ServedDatabase } from './thread-server.ts';

export interface ReaderThreadData {
  readonly path: string;
}

assertInvariant(parentPort !== null, 'the reader runs in a worker thread');
serveRequests({
  port: parentPort,
  database: open(),
  reopen: open,
  onDamage: ({ input }, error) => ({
    kind: 'damaged_index',
    indexId: String(input[0]),
    failure: toFailure(error),
  }),
  transferred: (operation, value) => (operation === 'loadIndexState' ? buffersOf(value as IndexState) : []),
});

function open(): ServedDatabase {
  const connection = openReader((workerData as ReaderThreadData).path);
  return { connection, operations: readOperations(connection) };
}

function buffersOf(state: IndexState): ArrayBuffer[] {
  return Object.values(state.versions).map(
    (column: Float64Array | Uint32Array) => column.buffer as ArrayBuffer,
  );
}
