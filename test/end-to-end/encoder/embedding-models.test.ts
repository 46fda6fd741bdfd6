/**
 * Embedding models of two families, with random weights, from the export to answers: long documents in the longest chunks that the
 * model takes, with rows above 255, and queries of more than 512 tokens.
 */
import { cpSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { queryRowsOf, statesOf } from '../../../src/cli/models/f32-rows.ts';
import { tokenWindows, type TokenWindow } from '../../../src/encoder/model/chunker.ts';
import { documentSequence } from '../../../src/encoder/model/colbert-rules.ts';
import { documentTokens, type DocumentTokens } from '../../../src/encoder/model/row-spans.ts';
import { loadModel, type ServedModel } from '../../../src/encoder/model/served-model.ts';
import { normalise } from '../../../src/encoder/inference/unit-rows.ts';
import { createTenant, runCommand } from '../../support/commands/command-line.ts';
import { expectReply, type Client } from '../../support/running/client.ts';
import { makeScratch, type Scratch } from '../../support/running/launch.ts';
import { makeIndex, put } from '../../support/running/requests.ts';
import { startServer, type ServerProcess } from '../../support/running/server.ts';
import { rankedWithComponents, type Index } from '../../support/running/wire.ts';

const fixtures = path.resolve(import.meta.dirname, '../../fixtures/embeddings');
const added = z.looseObject({ directory: z.string(), window_tokens_max: z.number() });
/** Stored rows have 8 bits, so a row that is nearly as near may be the nearest. */
const tolerance = 0.02;

const sentences = [
  'the quick brown fox jumps over the lazy dog',
  'late interaction scores a document by the best match',
  'which tissues express the receptor',
  'tokens and vectors, one two three four five',
];
/** Sentences in an order that does not repeat soon, so that the same words stand at different places. */
const longText = Array.from({ length: 120 }, (_, i) => `${i}: ${sentences[(i * i + (i >> 2)) % 4]}.`).join(
  ' ',
);

describe.each([
  // It has 8,192 positions. Attention over so many takes gigabytes and minutes.
  { name: 'modernbert', positions: 1_024 },
  { name: 'xlm-roberta', positions: 512 },
])('$name', ({ name, positions }) => {
  let scratch: Scratch;
  let server: ServerProcess;
  let client: Client;
  let index: Index;
  let model: ServedModel;
  let tokens: DocumentTokens;
  let windows: readonly TokenWindow[];

  beforeAll(async () => {
    scratch = await makeScratch();
    const source = path.join(scratch.root, name);
    cpSync(path.join(fixtures, name), source, { recursive: true });
    if (positions === 1_024)
      writeFileSync(path.join(source, 'tokenizer_config.json'), `{"model_max_length":${positions}}`);
    const env = { MAXSIMD_MODELS_DIR: path.join(scratch.root, 'models'), MAXSIMD_DATA_DIR: scratch.data };
    const { stdout, stderr, exitCode } = await runCommand(['models', 'add', source, '--json'], env);
    if (exitCode !== 0) throw new Error(stderr + stdout);
    const { directory, window_tokens_max: maxTokens } = added.parse(JSON.parse(stdout));
    model = await loadModel(directory);
    const chunking = { maxTokens, overlapTokens: 0, minimumChunkTokens: 1 };
    tokens = await documentTokens(model, longText, new AbortController().signal);
    windows = [...tokenWindows(tokens.ids.length, chunking, model.windowTokensMax)];
    server = await startServer({
      scratch,
      env: { MAXSIMD_MODELS_DIR: env.MAXSIMD_MODELS_DIR, MAXSIMD_MODEL: name },
    });
    ({ client } = await createTenant(server));
    index = await makeIndex(client, {
      chunking: { max_tokens: maxTokens, overlap_tokens: 0, minimum_chunk_tokens: 1 },
    });
    await put(client, index.id, [{ doc_id: 'long', text: longText }]);
  });

  afterAll(async () => {
    await server?.stop();
    await scratch.remove();
  });

  /** The unit rows of a window of the document, by the graph itself. */
  async function rowsOfWindow({ start, end }: TokenWindow): Promise<Float32Array> {
    const sequence = documentSequence(model.rules, tokens.ids.subarray(start, end));
    for await (const states of statesOf(model, [sequence])) {
      normalise(states, model.dim);
      return states;
    }
    throw new Error('no rows');
  }

  test('takes chunks as long as its positions allow, and none longer', async () => {
    const { rules, windowTokensMax } = model;
    expect(windowTokensMax + rules.documentHead.length + rules.tail.length).toBe(positions);
    expect(windows.length).toBeGreaterThan(1);
    const tooLong = { name: 'too long', chunking: { max_tokens: windowTokensMax + 1 } };
    expect((await client.createIndex(tooLong)).status).toBe(422);
  });

  test('names the nearest row of each query token, and where it lies, also above 255', async () => {
    const query = longText.slice(-1_500);
    const { results } = expectReply(
      await client.search(index.id, { query, return_components: true }),
      rankedWithComponents,
    );
    expect(results).toHaveLength(windows.length);
    const { dim } = model;
    const queryRows = (await queryRowsOf(model, [query]).next()).value as Float32Array;
    const queryTokens = queryRows.length / dim;
    // A longer query is cut to what the engine takes, whatever the positions.
    expect(queryTokens).toBe(512);
    let above = 0;
    for (const result of results) {
      const window = windows[result.chunk_index]!;
      const rows = await rowsOfWindow(window);
      for (const match of result.components.per_query_token) {
        const of = (row: number): number => {
          let sum = 0;
          for (let d = 0; d < dim; d += 1)
            sum += queryRows[match.token_index * dim + d]! * rows[row * dim + d]!;
          return sum;
        };
        const products = Array.from({ length: rows.length / dim }, (_, row) => of(row));
        const row = match.document_token_index;
        if (row > 255) above += 1;
        expect(products[row]).toBeGreaterThan(Math.max(...products) - tolerance);
        const token = window.start + row - model.rules.documentHead.length;
        const isText = token >= window.start && token < window.end;
        const place = isText ? tokens.places : undefined;
        const range = place && { start: place.starts[token]!, end: place.ends[token]! };
        expect(match.text_range).toEqual(range?.start === range?.end ? undefined : range);
      }
    }
    expect(above).toBeGreaterThan(10);
  });
});
