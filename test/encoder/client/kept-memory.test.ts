/** The api process keeps no memory of calls that are over. */
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import type { EncoderPool } from '../../../src/encoder/protocol/contract.ts';
import { callOptions, encodeAll, encodersOfTest } from '../../support/encoder/encoders.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

async function usedBytes(): Promise<number> {
  // Memory that a finaliser frees is collected the next time.
  for (let i = 0; i < 4; i++) {
    collectGarbage();
    await turn();
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

const text = 'the late interaction of token vectors '.repeat(20);
const chunking = { maxTokens: 20, overlapTokens: 4, minimumChunkTokens: 2 };

async function encode(pool: EncoderPool): Promise<void> {
  await encodeAll(pool, [text, text], { chunking });
}

async function leave(pool: EncoderPool): Promise<void> {
  const options = { ...callOptions(pool), chunking, onTokenCounts: () => undefined };
  for await (const { documentIndex } of pool.encodeDocuments([text, text], options)) {
    expect(documentIndex).toBeLessThan(2);
    break;
  }
}

async function refuse(pool: EncoderPool): Promise<void> {
  const refused = encodeAll(pool, [text, text], {
    onTokenCounts: async () => Promise.reject(new Error('no')),
  });
  await expect(refused).rejects.toThrow('no');
}

it.each([
  { ends: 'with every document', call: encode },
  { ends: 'early, left by its reader', call: leave },
  { ends: 'before it ran, refused by its caller', call: refuse },
])('keeps nothing of a document call that ends $ends', async ({ call }) => {
  const { pool } = await encodersOfTest();
  const repeat = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i++) await call(pool);
  };
  await repeat(100);
  const before = await usedBytes();
  await repeat(300);
  const keptPerCall = ((await usedBytes()) - before) / 300;
  expect(keptPerCall).toBeLessThan(5000);
});
