/**
 * Entry of a worker thread: the one writer of `catalog.db` in this process. It takes waiting requests in groups
 * (`group-commit.ts`) and answers a group at once. Between groups it runs checkpoints and purges. So neither the event loop
 * nor a commit waits for an fsync of other work.
 */
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { assertInvariant, toFailure } from '../../../errors.ts';
import { CommitMarkWriter, type CommitMark } from '../../commit-mark.ts';
import { SpaceReserve } from '../../space-reserve.ts';
import { catalogOperations } from '../operations/catalog-operations.ts';
import { openReader, openWriter } from '../connection.ts';
import type { Connection } from '../connection.ts';
import { GroupCommit, forgetOldMarkers, sequenceReader } from './group-commit.ts';
import { purgeOperations } from '../operations/purge-operations.ts';
import type { ThreadEvent, ThreadMessage, ThreadRequest } from './thread-protocol.ts';
import { Writer } from './writer.ts';

export interface WriterThreadData {
  readonly path: string;
  /** The memory that the `SpaceReserve` shares. */
  readonly reserve: SharedArrayBuffer;
  readonly busyTimeoutMs: number;
  readonly maintenanceIntervalMs: number;
}

/** A bound on the requests of a group, because the first waits for the last. */
const groupMax = 64;
const walTruncateIntervalMs = 3_600_000;
/** Operations that leave rows to purge. */
const purgingOperations = new Set(['deleteIndex', 'deleteTenant']);

assertInvariant(parentPort !== null, 'the writer runs in a worker thread');
const port = parentPort;
const data = workerData as WriterThreadData;
const connection = await openWriter({ ...data, durability: 'power_loss', mustExist: true });
const mark = new CommitMarkWriter(path.dirname(data.path));
const writer = createWriter(connection);
let purging = false;
let finishing = false;
let walTruncatedAt = performance.now();

port.on('message', (first: ThreadMessage) => {
  const messages = [first, ...waiting(groupMax - 1)];
  const requests = messages.filter((message) => message.kind === 'request');
  commit(requests.filter(({ operation }) => operation !== 'truncateWal'));
  // A checkpoint cannot run inside a transaction.
  for (const request of requests) if (request.operation === 'truncateWal') answerTruncate(request);
  if (messages.some(({ kind }) => kind === 'finish')) finish();
});
send({ kind: 'opened' });
const maintenance = setInterval(maintain, data.maintenanceIntervalMs);
maintain();

function waiting(max: number): readonly ThreadMessage[] {
  const messages: ThreadMessage[] = [];
  while (messages.length < max) {
    const received: { readonly message: ThreadMessage } | undefined = receiveMessageOnPort(port);
    if (received === undefined) break;
    messages.push(received.message);
  }
  return messages;
}

function commit(group: readonly ThreadRequest[]): void {
  if (group.length === 0) return;
  const outcomes = writer.runGroup(group);
  send({
    kind: 'replies',
    replies: outcomes.map((outcome, place) => {
      const number = group[place]?.number ?? 0;
      return outcome.ok
        ? { number, ok: true, value: outcome.value }
        : { number, ok: false, failure: toFailure(outcome.error) };
    }),
  });
  inBackground(() => writer.checkpoint());
  if (group.some(({ operation }) => purgingOperations.has(operation))) schedulePurge();
}

function answerTruncate({ number }: ThreadRequest): void {
  try {
    send({ kind: 'replies', replies: [{ number, ok: true, value: writer.truncateWal() }] });
  } catch (error) {
    send({ kind: 'replies', replies: [{ number, ok: false, failure: toFailure(error) }] });
  }
}

function schedulePurge(): void {
  if (purging) return;
  purging = true;
  setImmediate(purgeBatch);
}

/** Purges one batch in a turn of the event loop, so that commits run between batches. */
function purgeBatch(): void {
  if (finishing) return;
  purging = false;
  inBackground(() => {
    if (writer.purgeStep()) schedulePurge();
  });
}

function maintain(): void {
  schedulePurge();
  if (performance.now() - walTruncatedAt < walTruncateIntervalMs) return;
  inBackground(() => {
    if (writer.truncateWal()) walTruncatedAt = performance.now();
  });
}

/** Reports work that fails. It is tried again at the next occasion. */
function inBackground(work: () => void): void {
  try {
    work();
  } catch (error) {
    send({ kind: 'background_failure', failure: toFailure(error) });
  }
}

function finish(): void {
  finishing = true;
  clearInterval(maintenance);
  mark.close();
  connection.close();
  port.close();
}

function send(event: ThreadEvent): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
  port.postMessage(event);
}

function createWriter(database: Connection): Writer {
  const id = randomUUID();
  const groupCommit = new GroupCommit({
    connection: database,
    writer: id,
    readSequence: sequenceReader(() => openReader(data.path), id),
    beforeCommit: countCommits(database),
  });
  groupCommit.run([() => forgetOldMarkers(database)]);
  return new Writer({
    connection: database,
    groupCommit,
    operations: catalogOperations(database),
    purge: purgeOperations(database),
    reserve: new SpaceReserve(path.dirname(data.path), data.reserve),
  });
}

/** Counts each commit in the catalog, and writes the count beside the segments once the commit is durable (`commit-mark.ts`). */
function countCommits(database: Connection): () => () => void {
  const count = database.prepare<[], CommitMark>(
    'UPDATE catalog SET commits = commits + 1 RETURNING id AS catalogId, commits',
  );
  return () => {
    const counted = count.get();
    assertInvariant(counted !== undefined, 'the catalog has its row');
    return () => inBackground(() => mark.write(counted));
  };
}
