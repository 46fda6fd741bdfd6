/** Replies that no real encoder sends: wrong sizes, NaN, parts that do not belong together. */
import { afterAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { EndpointEvent } from '../../../src/encoder/client/endpoint.ts';
import { createEncoderPool } from '../../../src/encoder/client/pool.ts';
import type { EncoderPool } from '../../../src/encoder/protocol/contract.ts';
import { bytesOf, type PartMessage } from '../../../src/encoder/protocol/wire.ts';
import { callOptions, encodeAll } from '../../support/encoder/encoders.ts';
import { eventually } from '../../support/running/eventually.ts';
import {
  foreignDim as dim,
  type Misbehaviour,
  startForeignEncoder,
} from '../../support/network/foreign-encoder.ts';

const encoder = await startForeignEncoder();
afterAll(() => encoder.close());
beforeEach(() => encoder.behave({}));

const noChunk = { chunkRows: Buffer.alloc(0), vectors: Buffer.alloc(0), scales: Buffer.alloc(0) };
/** Two tokens, so that a good reply has two rows. */
const text = 'two words';

async function poolOn(): Promise<{ pool: EncoderPool; events: EndpointEvent[] }> {
  const events: EndpointEvent[] = [];
  const pool = createEncoderPool({ addresses: [encoder.address], onEvent: (event) => events.push(event) });
  onTestFinished(() => pool.close());
  await eventually(() => pool.ready());
  return { pool, events };
}

it('an encoder that does not say how it pools rows stores one for each token', async () => {
  const { pool } = await poolOn();
  expect(pool.models()).toMatchObject([{ name: 'foreign', rowBits: 8, poolFactor: 1 }]);
});

it('an encoder that pools a known version otherwise is not taken into use', async () => {
  encoder.behave({ poolFactor: 3 });
  const { pool, events } = await poolOn();
  expect(pool.models()).toMatchObject([{ poolFactor: 3 }]);
  encoder.serve(false);
  await eventually(() => !pool.ready());
  encoder.behave({ poolFactor: 2 });
  encoder.serve(true);
  await eventually(() => events.some(({ reason }) => reason?.includes('another model as foreign/1')));
  expect(pool.ready()).toBe(false);
});

const corrupt = expect.objectContaining({ event: 'corrupt_reply' }) as unknown;

describe('a corrupt query reply', () => {
  it('is distinguished from a good one', async () => {
    const { pool } = await poolOn();
    await expect(pool.encodeQuery(text, callOptions(pool))).resolves.toMatchObject({ rows: 2 });
  });

  it.each([
    ['has NaN', { vectors: bytesOf(new Float32Array(2 * dim).fill(Number.NaN, 5, 6)) }],
    ['has infinity', { offsets: bytesOf(Float32Array.of(0, Infinity)) }],
    ['has vectors of another dim', { vectors: bytesOf(new Float32Array(2 * (dim - 1))) }],
    ['is truncated', { vectors: bytesOf(new Float32Array(2 * dim)).subarray(0, 30) }],
    ['lacks offsets', { offsets: Buffer.alloc(0) }],
    ['has no rows', { rows: 0, vectors: Buffer.alloc(0), offsets: Buffer.alloc(0) }],
  ])('that %s is service_unavailable and reported', async (_, changes) => {
    encoder.behave({ query: (honest) => ({ ...honest, ...changes }) });
    const { pool, events } = await poolOn();
    await expect(pool.encodeQuery(text, callOptions(pool))).rejects.toMatchObject({
      code: 'service_unavailable',
    });
    expect(events).toContainEqual(corrupt);
  });

  it('with the wrong number of token counts is service_unavailable', async () => {
    encoder.behave({ tokenCounts: () => bytesOf(Uint32Array.of(1, 2)) });
    const { pool } = await poolOn();
    await expect(pool.countTokens([text], callOptions(pool))).rejects.toMatchObject({
      code: 'service_unavailable',
    });
  });
});

describe('a caller who leaves a document call', () => {
  // The documents have three tokens and one. An encoder of an earlier release names no tokens: each row is of one.
  it.each([
    [0, 3],
    [2, 2],
    [5, 3],
  ])('learns how many tokens were run of incomplete documents (%i named)', async (named, charged) => {
    // The first document lacks a part. The second, which comes after it, is whole.
    encoder.behave({
      parts: ([first, second]) => [{ ...first!, last: false, tokens: named }, second!],
      neverEnds: true,
    });
    const { pool } = await poolOn();
    const controller = new AbortController();
    const left: number[] = [];
    const whole: number[] = [];
    const documents = pool.encodeDocuments(['one two three', 'four'], {
      ...callOptions(pool, { signal: controller.signal }),
      chunking: { maxTokens: 256, overlapTokens: 0, minimumChunkTokens: 1 },
      onTokenCounts: () => undefined,
      onLeft: (tokens) => left.push(tokens),
    });
    const reading = (async () => {
      for await (const { documentIndex } of documents) {
        whole.push(documentIndex);
        controller.abort(new Error('gone'));
      }
    })();
    await expect(reading).rejects.toThrow('gone');
    expect({ whole, left }).toEqual({ whole: [1], left: [charged] });
  });
});

describe('an encoder of an earlier release, which cuts nothing', () => {
  it('serves a list that fits whole, and another one is service_unavailable', async () => {
    const { pool } = await poolOn();
    const texts = ['one two three', 'four'];
    const documents = await encodeAll(pool, texts, { cut: { documentTokensMax: 2, tokensMax: 4 } });
    expect(documents.map(({ inputTokens }) => inputTokens)).toEqual([3, 1]);
    await expect(
      encodeAll(pool, texts, { cut: { documentTokensMax: 2, tokensMax: 3 } }),
    ).rejects.toMatchObject({
      code: 'service_unavailable',
      message: expect.stringContaining('of an earlier release, which cannot cut'),
    });
  });
});

describe('a corrupt document reply', () => {
  it('is distinguished from a good one', async () => {
    const { pool } = await poolOn();
    await expect(encodeAll(pool, [text])).resolves.toHaveLength(1);
  });

  it('tells the unknown tokens of each document, and nothing where the encoder does not count them', async () => {
    const { pool } = await poolOn();
    const [uncounted] = await encodeAll(pool, [text]);
    expect(uncounted).not.toHaveProperty('unknownTokens');
    encoder.behave({ unknownCounts: [0, 2] });
    const documents = await encodeAll(pool, [text, text]);
    expect(documents.map(({ unknownTokens }) => unknownTokens)).toEqual([0, 2]);
  });

  it.each<[string, Partial<PartMessage>]>([
    ['has a scale that is no number', { scales: bytesOf(Uint16Array.of(0x3c00, 0x7e00)) }],
    ['has an infinite scale', { scales: bytesOf(Uint16Array.of(0x7c00, 0x3c00)) }],
    ['has a negative scale', { scales: bytesOf(Uint16Array.of(0xbc00, 0x3c00)) }],
    ['has vectors of another dim', { vectors: bytesOf(new Int8Array(2 * (dim - 1))) }],
    ['has fewer scales than rows', { scales: bytesOf(Uint16Array.of(0x3c00)) }],
    ['has half a scale', { scales: Buffer.alloc(3) }],
    ['has a chunk without rows', { chunkRows: bytesOf(Uint32Array.of(2, 0)) }],
    ['has an absurd chunk', { chunkRows: bytesOf(Uint32Array.of(0xffffffff)) }],
    ['names an unknown document', { documentIndex: 7 }],
    ['never ends its document', { last: false }],
  ])('that %s is service_unavailable and reported', async (_, changes) => {
    encoder.behave({ parts: (honest) => honest.map((part) => ({ ...part, ...changes })) });
    const { pool, events } = await poolOn();
    await expect(encodeAll(pool, [text])).rejects.toMatchObject({ code: 'service_unavailable' });
    expect(events).toContainEqual(corrupt);
  });

  it.each<[string, Misbehaviour]>([
    ['sends nothing', { parts: () => [] }],
    ['sends a document twice', { parts: (honest) => [...honest, ...honest] }],
    ['sends counts again', { countsTwice: true }],
    ['counts the unknown tokens of other documents', { unknownCounts: [0, 0] }],
    [
      'has no chunk for a text with tokens',
      { parts: (honest) => honest.map((part) => ({ ...part, ...noChunk })) },
    ],
  ])('that %s is service_unavailable', async (_, misbehaviour) => {
    encoder.behave(misbehaviour);
    const { pool } = await poolOn();
    await expect(encodeAll(pool, [text])).rejects.toMatchObject({ code: 'service_unavailable' });
  });
});
