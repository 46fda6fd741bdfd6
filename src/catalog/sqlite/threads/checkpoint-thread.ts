/** Worker entry: empties the write-ahead log of `usage.db`, which waits for the disk, away from the event loop. */
import { parentPort, workerData } from 'node:worker_threads';
import { assertInvariant } from '../../../errors.ts';
import { openWriter, restartLog } from '../connection.ts';
import { serveRequests } from './thread-server.ts';

export interface CheckpointThreadData {
  readonly path: string;
  /** For readers of other processes that are in the way; requests wait meanwhile. */
  readonly busyTimeoutMs: number;
}

assertInvariant(parentPort !== null, 'checkpoints run in a worker thread');
const connection = await openWriter({ ...(workerData as CheckpointThreadData), durability: 'process_death' });
const operations = { restartLog: () => restartLog(connection) };
serveRequests({ port: parentPort, database: { connection, operations } });

export type CheckpointOperations = typeof operations;
