/** A foreign encoder that answers nonsense, or too late: 503, no wrong score, nothing stored, nothing charged. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { bytesOf } from '../../../src/encoder/protocol/wire.ts';
import { connect, expectError, type Client, type Reply } from '../../support/running/client.ts';
import { createTenant } from '../../support/commands/command-line.ts';
import { eventually } from '../../support/running/eventually.ts';
import {
  foreignDim,
  startForeignEncoder,
  type ForeignEncoder,
  type Misbehaviour,
} from '../../support/network/foreign-encoder.ts';
import {
  type ServerOptions,
  type ServerProcess,
  readMetric,
  startServer,
} from '../../support/running/server.ts';
import { find, makeIndex, put, readUsage } from '../../support/running/requests.ts';

const deadlineMs = 800;
const question = 'which river runs past the stone house';
const stored = [
  { doc_id: 'river', text: 'a river runs past green meadows' },
  { doc_id: 'house', text: 'the stone house stands north of the river' },
  { doc_id: 'table', text: 'paper lies upon a table' },
];
const added = [
  { doc_id: 'added', text: 'water and light' },
  { doc_id: 'river', text: 'another text under a known name' },
];

describe('a foreign encoder that misbehaves', () => {
  let encoder: ForeignEncoder;
  let server: ServerProcess;
  let client: Client;
  let library = '';

  beforeAll(async () => {
    encoder = await startForeignEncoder();
    server = await startServer(options());
    ({ client } = await createTenant(server));
    ({ id: library } = await makeIndex(client));
    await put(client, library, stored);
  });

  afterAll(async () => {
    await server?.stop();
    await server?.scratch.remove();
    encoder?.close();
  });

  const options = (): ServerOptions => ({
    metrics: true,
    env: {
      MAXSIMD_ENCODERS: encoder.address,
      MAXSIMD_MODEL: 'foreign/1',
      MAXSIMD_TIMEOUT_SEARCH_MS: String(deadlineMs),
      MAXSIMD_TIMEOUT_UPSERT_MS: String(deadlineMs),
    },
  });

  const ready = (status: number): Promise<true> =>
    eventually(async () => (await client.send('GET', '/readyz')).status === status);

  const search = (): Promise<Reply> => client.search(library, { query: question });
  const score = (): Promise<Reply> => client.score({ query: question, documents: stored });
  const upsert = (): Promise<Reply> => client.upsert(library, added);

  /** All that a wrong reply could have changed; requests are counted whatever their answer. */
  async function state(): Promise<object> {
    const { results } = await find(client, library, { query: question });
    const scored = (await score()).body as { readonly results: unknown };
    const { usage } = await readUsage(client);
    const { documents, document_upserts: upserts } = usage;
    return { results, scored: scored.results, documents, upserts };
  }

  async function chargedTokens(): Promise<bigint> {
    return BigInt((await readUsage(client)).usage.input_tokens);
  }

  /** Every one of these requests is refused in time, and nothing comes of it. */
  async function expectRefusals(
    misbehaviour: Misbehaviour,
    requests: readonly (() => Promise<Reply>)[],
  ): Promise<void> {
    const before = await state();
    const charged = await chargedTokens();
    encoder.behave(misbehaviour);
    try {
      for (const request of requests) {
        const started = performance.now();
        const reply = await request();
        expectError(reply, 503, 'service_unavailable');
        expect(reply.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
        expect(performance.now() - started).toBeLessThan(deadlineMs + 60_000);
      }
    } finally {
      encoder.behave({});
    }
    expect(await chargedTokens()).toBe(charged);
    expect(await state()).toEqual(before);
  }

  const numbers = (count: number, wrong: number): Buffer =>
    bytesOf(new Float32Array(count).fill(0.1).fill(wrong, count - 1));

  test.each<[string, NonNullable<Misbehaviour['query']>]>([
    ['NaN', (honest) => ({ ...honest, vectors: numbers(honest.rows * foreignDim, Number.NaN) })],
  ])('with %s for a query: search and score are 503', async (_, query) => {
    await expectRefusals({ query }, [search, score]);
  });

  test.each<[string, NonNullable<Misbehaviour['parts']>]>([
    ['a scale that is no number', withLast((part) => ({ ...part, scales: halves(part.scales, 0x7e00) }))],
    ['a document missing', (honest) => honest.slice(0, -1)],
  ])('with %s: upsert and score are 503, nothing is stored', async (_, parts) => {
    await expectRefusals({ parts }, [upsert, score]);
  });

  test('with torn messages: all are 503', async () => {
    await expectRefusals({ bytes: (honest) => honest.subarray(0, honest.length - 5) }, [
      search,
      score,
      upsert,
    ]);
  });

  test('that is too slow: all are 503 by their deadline, and the late answers change nothing', async () => {
    await expectRefusals({ delayMs: deadlineMs + 2500 }, [search, score, upsert]);
    await eventually(() => encoder.openCalls() === 0);
  });

  test('that falls silent in the middle: 503 by the deadline, and its call is given up', async () => {
    const half: Misbehaviour = { parts: (honest) => honest.slice(0, 1), neverEnds: true };
    await expectRefusals(half, [score, upsert]);
    await eventually(() => encoder.openCalls() === 0);
  });

  test('that comes back with vectors of another size: it is not taken into use again until it is mended', async () => {
    const before = await state();
    encoder.serve(false);
    await ready(503);
    encoder.behave(withDim(8));
    encoder.serve(true);
    await eventually(() => server.output().stderr.includes('another model as foreign/1'));
    for (const reply of [await search(), await upsert(), await score()]) {
      expectError(reply, 503, 'service_unavailable');
    }
    encoder.behave({});
    await ready(200);
    expect(await state()).toEqual(before);
    expect(server.output().stderr.split('another model as foreign/1')).toHaveLength(2);
  });

  test('leaves no request and no slot behind', async () => {
    expect(await readMetric(server, 'maxsimd_http_requests_in_flight')).toBe(0);
    expect(await readMetric(server, 'maxsimd_requests_admitted')).toBe(0);
  });

  test('that has vectors of another size when the server starts: 503, and no index is taken for damaged', async () => {
    const before = await state();
    const restart = async (): Promise<void> => {
      await server.stop();
      server = await startServer({ ...options(), scratch: server.scratch });
      client = connect(server.url, client.key);
    };
    encoder.behave(withDim(8));
    await restart();
    for (const reply of [await search(), await upsert()]) expectError(reply, 503, 'service_unavailable');
    encoder.behave({});
    await restart();
    expect(await state()).toEqual(before);
  });
});

/** Sound in itself, of another model. */
function withDim(dim: number): Misbehaviour {
  return {
    dim,
    query: (honest) => ({ ...honest, vectors: bytesOf(new Float32Array(honest.rows * dim).fill(0.1)) }),
    parts: (honest) =>
      honest.map((part) => ({
        ...part,
        vectors: part.vectors.subarray(0, (part.vectors.length / foreignDim) * dim),
      })),
  };
}

type Part = Parameters<NonNullable<Misbehaviour['parts']>>[0][number];

/** Honest parts but for the last one. */
function withLast(change: (part: Part) => Part): NonNullable<Misbehaviour['parts']> {
  return (honest) => honest.map((part, at) => (at === honest.length - 1 ? change(part) : part));
}

/** Half-precision numbers with a wrong last one. */
function halves(honest: Uint8Array, wrongBits: number): Buffer {
  const changed = Buffer.from(honest);
  changed.writeUInt16LE(wrongBits, changed.length - 2);
  return changed;
}
