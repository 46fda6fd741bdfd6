import type { SessionPool } from '../../../src/encoder/inference/session-pool.ts';
import { on } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { describe, expect, it, onTestFinished } from 'vitest';
import { documentSequence } from '../../../src/encoder/model/colbert-rules.ts';
import { loadModel } from '../../../src/encoder/model/served-model.ts';
import type { BatchKind, WorkerReply } from '../../../src/encoder/inference/session-protocol.ts';
import { tinyModel } from '../../support/encoder/models.ts';
import { sessionsOfTest } from '../../support/encoder/sessions.ts';

async function stage() {
  const model = await loadModel(tinyModel);
  const batch = (kind: BatchKind) => {
    const { ids, attended, rows } = documentSequence(model.rules, model.tokenizer.encode('the'));
    return {
      kind,
      modelIndex: 0,
      ids,
      lengths: Uint32Array.of(ids.length),
      attended: Uint32Array.of(attended),
      kept: undefined,
      rows: kind === 'query' ? ids.length : rows,
      paddedLength: ids.length,
      paddedTexts: 1,
    };
  };
  return { model, batch };
}

function hasRoom(pool: SessionPool, kind: BatchKind): boolean {
  return pool.roomFor(kind) > 0;
}

describe('a worker', () => {
  it('takes the batch that runs and one ahead of each kind, and a query’s place is its own', async () => {
    const { model, batch } = await stage();
    const pool = await sessionsOfTest(model);
    const run = async (kind: BatchKind) => pool.run(batch(kind));
    const rooms = () => [hasRoom(pool, 'query'), hasRoom(pool, 'document')];
    expect(rooms()).toEqual([true, true]);
    const running = run('query');
    expect(rooms()).toEqual([true, true]);
    const ahead = run('query');
    expect(rooms()).toEqual([false, true]);
    await expect(run('query')).rejects.toThrow('without room');
    await running;
    expect(rooms()).toEqual([true, true]);
    await ahead;
  });

  it('takes no query ahead behind a long one, and a document all the same', async () => {
    const { model, batch } = await stage();
    const pool = await sessionsOfTest(model);
    const padded = (kind: BatchKind, paddedLength: number) => pool.run({ ...batch(kind), paddedLength });
    const document = padded('document', 300);
    expect(hasRoom(pool, 'document')).toBe(true);
    const query = padded('query', 257);
    expect(hasRoom(pool, 'query')).toBe(false);
    await Promise.all([document, query]);
    const short = padded('query', 256);
    expect(hasRoom(pool, 'query')).toBe(true);
    await short;
  });

  it('is kept for queries while they come, where there are others', async () => {
    const { model, batch } = await stage();
    const pool = await sessionsOfTest(model, 2);
    const fill = () => {
      const runs = [];
      while (hasRoom(pool, 'document')) runs.push(pool.run(batch('document')));
      return runs;
    };
    const before = fill();
    expect(before).toHaveLength(4);
    await Promise.all(before);
    await pool.run(batch('query'));
    const beside = fill();
    expect(beside).toHaveLength(2);
    expect(hasRoom(pool, 'query')).toBe(true);
    await Promise.all(beside);
    await pause(150);
    const after = fill();
    expect(after).toHaveLength(4);
    await Promise.all(after);
  });

  it('takes no long queries for a second after a short one, where there are others', async () => {
    const { model, batch } = await stage();
    const pool = await sessionsOfTest(model, 2);
    const padded = (paddedLength: number) => pool.run({ ...batch('query'), paddedLength });
    await padded(129);
    expect(pool.roomFor('query')).toBe(Infinity);
    await padded(128);
    const long = padded(300);
    // The other worker has the batch, and takes no query behind it.
    expect(pool.roomFor('query')).toBe(128);
    const short = padded(100);
    await Promise.all([long, short]);
    await pause(1_100);
    const both = [padded(300), padded(300)];
    expect(pool.roomFor('query')).toBe(0);
    await Promise.all(both);
  });

  it('runs a document batch after eight query batches at the latest, however many wait', async () => {
    const { model, batch } = await stage();
    const workerData = { models: [model.session], provider: 'cpu', deviceId: 0, intraOpThreads: 1 };
    const worker = new Worker(new URL('../../../src/encoder/inference/session-worker.ts', import.meta.url), {
      workerData,
    });
    onTestFinished(async () => void (await worker.terminate()));
    const replies = on(worker, 'message') as AsyncIterableIterator<[WorkerReply]>;
    await replies.next();
    const kinds: BatchKind[] = ['query', 'document', ...Array.from({ length: 20 }, () => 'query' as const)];
    for (const [batchId, kind] of kinds.entries())
      worker.postMessage({ ...batch(kind), type: 'batch', batchId }, []);
    const order: (BatchKind | undefined)[] = [];
    for await (const [reply] of replies) {
      order.push('batchId' in reply ? kinds[reply.batchId] : undefined);
      if (order.length === kinds.length) break;
    }
    expect(order.indexOf('document')).toBeGreaterThan(0);
    expect(order.indexOf('document')).toBeLessThanOrEqual(8);
  });
});
