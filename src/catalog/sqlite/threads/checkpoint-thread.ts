/** Entry of a worker thread: empties the write-ahead log of `usage.db` away from the event loop, because that waits for the disk. */
import { parentPort, workerData } from 'node:worker_threads';
import { assertInvariant } from '../../../errors.ts';
import { openWriter, restartLog } from '../connection.ts';
import { serveRequests } from './thread-server.ts';

export interface CheckpointThreadData {
  readonly path: string;
  /** How long a checkpoint waits for readers of other processes. Requests wait as long. */
  readonly busyTimeoutMs: number;
}

assertInvariant(parentPort !== null, 'checkpoints run in a worker thread');
const connection = await openWriter({ ...(workerData as CheckpointThreadData), durability: 'process_death' });
const operations = { restartLog: () => restartLog(connection) };
serveRequests({ port: parentPort, database: { connection, operations } });

export type CheckpointOperations = typeof operations;
