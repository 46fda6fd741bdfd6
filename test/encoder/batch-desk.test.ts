import { describe, expect, it } from 'vitest';
import { BatchDesk } from '../../src/encoder/batch-desk.ts';
import type { BatchMessage } from '../../src/encoder/session-protocol.ts';

const dim = 4;

function batchOf(changes: Partial<BatchMessage> = {}): BatchMessage {
  return {
    type: 'batch',
    batchId: 7,
    kind: 'query',
    model: 1,
    ids: Int32Array.of(101, 5, 102, 101, 102),
    lengths: Uint32Array.of(3, 2),
    attended: Uint32Array.of(3, 1),
    kept: undefined,
    rows: 5,
    paddedLength: 3,
    paddedTexts: 2,
    ...changes,
  };
}

/** Both ends over the same memory, as two threads have them. */
function ends(): { readonly desk: BatchDesk; readonly worker: BatchDesk } {
  const desk = new BatchDesk();
  return { desk, worker: new BatchDesk(desk.memory) };
}

describe('a desk', () => {
  it.each([
    ['with all positions kept', undefined],
    ['with some positions kept', Uint8Array.of(1, 0, 1, 1, 0)],
  ])('gives a batch over as it is, %s', (_, kept) => {
    const { desk, worker } = ends();
    expect(worker.take()).toBeUndefined();
    void desk.put(batchOf({ kept }), dim);
    expect(worker.take()).toEqual(batchOf({ kept }));
    expect(worker.take()).toBeUndefined();
  });

  it('gives the answer back, and is free again', async () => {
    const { desk, worker } = ends();
    for (let batchId = 1; batchId < 5; batchId++) {
      const answered = desk.put(batchOf({ batchId }), dim);
      worker.take();
      const vectors = Float32Array.from({ length: 5 * dim }, (_, i) => i / batchId);
      const offsets = Float32Array.of(batchId, 0, -1, 2, 3);
      worker.answer({ kind: 'query', vectors, offsets }, 3.25);
      await answered;
      const output = { kind: 'query', vectors, offsets };
      expect(desk.collect()).toEqual({ type: 'done', batchId, runMs: 3.25, output });
    }
  });

  it('gives a failure back in its words', async () => {
    const { desk, worker } = ends();
    const answered = desk.put(batchOf(), dim);
    worker.take();
    worker.fail('ein Fehler: ∅');
    await answered;
    expect(desk.collect()).toEqual({ type: 'error', batchId: 7, message: 'ein Fehler: ∅' });
    expect(desk.put(batchOf(), dim)).toBeDefined();
  });

  it('refuses documents, a second batch, and what does not fit', () => {
    const { desk, worker } = ends();
    const long = new Int32Array(120_000);
    expect(desk.put(batchOf({ kind: 'document' }), dim)).toBeUndefined();
    expect(desk.put(batchOf({ ids: long }), dim)).toBeUndefined();
    expect(desk.put(batchOf({ rows: 1100 }), 128)).toBeUndefined();
    expect(desk.put(batchOf(), dim)).toBeDefined();
    expect(desk.put(batchOf(), dim)).toBeUndefined();
    worker.take();
    expect(desk.put(batchOf(), dim)).toBeUndefined();
  });

  it('keeps a worker awake that was rung for between its look and its sleep', () => {
    const { desk, worker } = ends();
    const rings = worker.rings();
    desk.ring();
    worker.sleep(rings);
    expect(worker.rings()).toBe(rings + 1);
  });
});
