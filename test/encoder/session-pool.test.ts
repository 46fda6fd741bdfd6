import { describe, expect, it } from 'vitest';
import { documentSequence } from '../../src/encoder/colbert-rules.ts';
import { loadModel } from '../../src/encoder/served-model.ts';
import type { BatchKind } from '../../src/encoder/session-protocol.ts';
import { tinyModel } from './encoders.ts';
import { sessionsOfTest } from './sessions.ts';

async function stage() {
  const model = await loadModel(tinyModel);
  const pool = await sessionsOfTest(model);
  const run = async (kind: BatchKind) => {
    const { ids, attended, rows } = documentSequence(model.rules, model.tokenizer.encode('the'));
    return pool.run({
      kind,
      model: 0,
      ids,
      lengths: Uint32Array.of(ids.length),
      attended: Uint32Array.of(attended),
      kept: undefined,
      rows: kind === 'query' ? ids.length : rows,
      paddedLength: ids.length,
      paddedTexts: 1,
    });
  };
  return { pool, run };
}

describe('a worker', () => {
  it('takes the batch that runs and one ahead of each kind, and a query’s place is its own', async () => {
    const { pool, run } = await stage();
    const rooms = () => [pool.hasRoom('query'), pool.hasRoom('document')];
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
});
