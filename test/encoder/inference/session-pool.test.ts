import type { SessionPool } from '../../../src/encoder/inference/session-pool.ts';
import { on } from 'node:events';
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
    const long = async () => pool.run({ ...batch('query'), paddedLength: 129 });
    const rooms = () => [pool.roomFor('query') === Infinity, hasRoom(pool, 'document')];
    expect(rooms()).toEqual([true, true]);
    const running = long();
    expect(rooms()).toEqual([true, true]);
    const ahead = long();
    expect(rooms()).toEqual([false, true]);
    await expect(long()).rejects.toThrow('without room');
    await running;
    expect(rooms()).toEqual([true, true]);
    await ahead;
  });

  it('takes nothing ahead behind a long batch of the same kind', async () => {
    const { model, batch } = await stage();
    const pool = await sessionsOfTest(model);
    const padded = (kind: BatchKind, paddedLength: number) => pool.run({ ...batch(kind), paddedLength });
    const short = [padded('document', 256), padded('query', 256)];
    expect([pool.roomFor('query'), pool.roomFor('document')]).toEqual([Infinity, Infinity]);
    await Promise.all(short);
    const long = [padded('document', 257), padded('query', 257)];
    // The worker for short queries takes one all the same.
    expect([pool.roomFor('query'), pool.roomFor('document')]).toEqual([128, 0]);
    await Promise.all(long);
  });

  it('takes no documents behind a long query, and the one for small batches takes them', async () => {
    const { model, batch } = await stage();
    const pool = await sessionsOfTest(model);
    const long = pool.run({ ...batch('query'), paddedLength: 257 });
    expect([pool.roomFor('document'), pool.roomFor('small')]).toEqual([0, 128]);
    await long;
    expect(pool.roomFor('document')).toBe(Infinity);
  });

  it('of its own runs short queries, and takes neither documents nor long queries', async () => {
    const { model, batch } = await stage();
    const pool = await sessionsOfTest(model);
    const padded = (kind: BatchKind, paddedLength: number) => pool.run({ ...batch(kind), paddedLength });
    const runs = [padded('document', 200), padded('document', 200)];
    expect(hasRoom(pool, 'document')).toBe(false);
    runs.push(padded('query', 300));
    // The worker of the documents has it, and takes no query behind it.
    expect(pool.roomFor('query')).toBe(128);
    runs.push(padded('query', 100), padded('query', 128));
    expect(pool.roomFor('query')).toBe(0);
    await Promise.all(runs);
  });

  it('takes no documents ahead while tenants share it', async () => {
    const { model, batch } = await stage();
    const pool = await sessionsOfTest(model);
    const isContended = true;
    expect(pool.roomFor('document', isContended)).toBe(Infinity);
    const running = pool.run(batch('document'));
    expect([pool.roomFor('document', isContended), pool.roomFor('document')]).toEqual([0, Infinity]);
    await running;
  });

  it('of its own runs small batches of documents, one at a time', async () => {
    const { model, batch } = await stage();
    const pool = await sessionsOfTest(model);
    const others = [pool.run(batch('document')), pool.run(batch('document'))];
    expect([pool.roomFor('document'), pool.roomFor('small')]).toEqual([0, 128]);
    const small = pool.run(batch('document'), 'small');
    expect(pool.roomFor('small')).toBe(0);
    const rows = await Promise.all([...others, small].map(async (run) => (await run).output));
    expect(rows[2]).toEqual(rows[0]);
    expect(pool.roomFor('small')).toBe(128);
  });

  it('runs a document batch after eight query batches at the latest, however many wait', async () => {
    const { model, batch } = await stage();
    const workerData = {
      models: [model.session],
      provider: 'cpu',
      deviceId: 0,
      intraOpThreads: 1,
      niceness: 0,
    };
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
