/** Queries that the model cannot encode, in real encoders. They are refused, and queries beside them are answered. */
import { describe, expect, it } from 'vitest';
import type { EncodedQuery, EncoderPool } from '../../../src/encoder/protocol/contract.ts';
import { callOptions, encodersOfTest } from '../../support/encoder/encoders.ts';
import { serveFailingModel } from '../../support/encoder/failing-model.ts';

const model = await serveFailingModel();

const honest = 'the late interaction';

// Restarts may take long on a busy machine.
const start = async () => encodersOfTest({ modelDirectories: [model.directory] }, { healWaitMs: 20_000 });

/** `count` queries at once, the sixth of them unencodable. */
async function encodeTogether(pool: EncoderPool, count: number, unencodable: string) {
  const texts = Array.from({ length: count }, (_, i) => (i === 5 ? unencodable : honest));
  const deadlineMs = Date.now() + 100_000;
  const queries = await Promise.all(
    texts.map(async (text) => pool.encodeQuery(text, callOptions(pool, { deadlineMs }))),
  );
  const [outcome] = queries.splice(5, 1);
  return { outcome, others: queries };
}

/** The other texts of a batch may change the last bits. */
function expectLike(query: EncodedQuery, expected: EncodedQuery): void {
  expect(query.problem).toBeUndefined();
  expect(query.rows).toBe(expected.rows);
  const differences = query.vectors.map((value, i) => Math.abs(value - expected.vectors[i]!));
  expect(Math.max(...differences)).toBeLessThan(1e-5);
}

describe('a query that the model cannot run', () => {
  it('is refused, and the others of its batch get the same rows as without it', async () => {
    const { pool, events, logs } = await start();
    const alone = await pool.encodeQuery(honest, callOptions(pool));
    for (const kind of ['failing', 'spoiling'] as const) {
      const { outcome, others } = await encodeTogether(pool, 30, `the ${model.words[kind]}`);
      expect(outcome).toMatchObject({
        problem: 'the model cannot encode this text',
        inputTokens: 0,
        rows: 0,
      });
      expect(others).toHaveLength(29);
      for (const query of others) expectLike(query, alone);
    }
    const [statistics] = await pool.statistics();
    expect(statistics).toMatchObject({ queuedRequests: 0, queuedTokens: 0 });
    const causes = logs.filter((line) => line.includes('a query cannot be encoded'));
    expect(causes.some((line) => line.includes('inference failed'))).toBe(true);
    expect(causes.some((line) => line.includes('no numbers'))).toBe(true);
    expect(events.map(({ event }) => event)).toEqual(['admitted']);
  });
});
