/** Texts that the model cannot encode, in a real encoder. They are refused, and texts in the same batch are encoded. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Encoders, encodeAll, startEncoders } from '../../support/encoder/encoders.ts';
import { serveFailingModel } from '../../support/encoder/failing-model.ts';

const model = await serveFailingModel();
let encoders: Encoders;
beforeAll(async () => {
  // Restarts may take long on a busy machine.
  encoders = await startEncoders({ modelDirectories: [model.directory] }, { healWaitMs: 20_000 });
});
afterAll(async () => {
  await encoders?.close();
});

const problem = 'the model cannot encode this text';

describe.each(['failing', 'spoiling'] as const)('a %s text', (kind) => {
  it('is refused, and the others of its call get the same vectors as without it', async () => {
    const unencodable = `the ${model.words[kind]} document`;
    const texts = Array.from({ length: 30 }, (_, i) => `the late interaction ${'of token '.repeat(i % 4)}`);
    const honest = await encodeAll(encoders.pool, texts);
    const mixed = await encodeAll(encoders.pool, texts.with(11, unencodable));
    expect(mixed[11]).toMatchObject({ documentIndex: 11, inputTokens: 3, problem });
    expect(mixed[11]?.chunkRows).toHaveLength(0);
    const others = (documents: typeof mixed): unknown[] =>
      documents
        .filter(({ documentIndex }) => documentIndex !== 11)
        .map(({ chunkRows, vectors, scales }) => ({ chunkRows, vectors, scales }));
    expect(others(mixed)).toEqual(others(honest));
  });

  it('is refused whole when one of its chunks is at fault', async () => {
    const long = 'the late interaction of token vectors in every document '.repeat(60);
    const unencodable = `${long} ${model.words[kind]} ${long}`;
    const [first, second, third] = await encodeAll(encoders.pool, [long, unencodable, long]);
    expect(second).toMatchObject({ problem, inputTokens: 2 * 540 + 1 });
    expect(second?.chunkRows).toHaveLength(0);
    expect(first?.problem).toBeUndefined();
    expect(third?.vectors).toEqual(first?.vectors);
  });

  it('is refused though all of its call are like it, and the next call is served', async () => {
    const texts = Array.from({ length: 50 }, () => `${model.words[kind]} the`);
    const documents = await encodeAll(encoders.pool, texts);
    expect(documents.map((document) => document.problem)).toEqual(texts.map(() => problem));
    const [next] = await encodeAll(encoders.pool, ['the late']);
    expect(next?.problem).toBeUndefined();
  });

  it('leaves nothing in the queue, and its cause in the log', async () => {
    await encodeAll(encoders.pool, [model.words[kind], 'the']);
    const [statistics] = await encoders.pool.statistics();
    expect(statistics).toMatchObject({ queuedRequests: 0, queuedTokens: 0, expired: 0 });
    const logged = encoders.logs.filter((line) => line.includes('a document cannot be encoded'));
    expect(logged.some((line) => line.includes(kind === 'failing' ? 'inference failed' : 'no numbers'))).toBe(
      true,
    );
  });
});
