/** `maxsimd models add` of an ordinary embedding model, as hubs have it: it becomes a model for late interaction. */
import { cpSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { readEmbeddingExport } from '../../../src/cli/models/embedding-export.ts';
import path from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { tokenWeightsOf } from '../../../src/cli/models/token-weights.ts';
import { loadModel } from '../../../src/encoder/model/served-model.ts';
import { callOptions, encodersOfTest } from '../../support/encoder/encoders.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { runJsonHere } from '../../support/commands/command-process.ts';
import type { RunOptions } from '../../support/commands/command-here.ts';

const hub = path.resolve(import.meta.dirname, '../../fixtures/colbert-tiny/embedding');
const dim = 16;
let source: string;
let options: RunOptions;

beforeEach(async () => {
  const directory = await newDirectory();
  source = path.join(directory, 'an-embedding');
  cpSync(hub, source, { recursive: true });
  options = {
    environment: {
      MAXSIMD_MODELS_DIR: path.join(directory, 'models'),
      MAXSIMD_DATA_DIR: path.join(directory, 'data'),
    },
  };
});

const add = (...args: string[]): ReturnType<typeof runJsonHere> =>
  runJsonHere(['models', 'add', ...args], options);

async function refused(...args: string[]): Promise<string> {
  const { exitCode, document } = await add(...args);
  expect(exitCode).toBe(1);
  return document.error.message;
}

/** Writes keys of a JSON file of the export anew. */
function change(file: string, keys: object): void {
  const full = path.join(source, file);
  writeFileSync(full, JSON.stringify({ ...JSON.parse(readFileSync(full, 'utf8')), ...keys }));
}

it('is installed with prompts, positions, a mean vector and weights of tokens', async () => {
  const { document } = await add(source);
  expect(document).toMatchObject({ name: 'an-embedding', dim, row_bits: 8, pool_factor: 1 });
  expect(document.notes).toEqual([expect.stringContaining('weighted by ranks of the vocabulary')]);
  const model = await loadModel(document.directory);
  expect(model.rules.queryPositionsMax).toBe(48);
  expect(model.session).toMatchObject({ output: 'last_hidden_state', normalise: true });
  expect(model.session.centring?.some((value) => value !== 0)).toBe(true);
  const { pool } = await encodersOfTest({ modelDirectories: [document.directory] });
  const { vectors, rows } = await pool.encodeQuery('zebra', callOptions(pool));
  const weights = Array.from({ length: rows }, (_, row) =>
    Math.hypot(...vectors.subarray(row * dim, (row + 1) * dim)),
  );
  // The marks at both ends weigh nothing. Each vector is as long as its token's weight.
  expect([weights.at(0), weights.at(-1)]).toEqual([0, 0]);
  const pieces = [model.rules.queryHead.at(-1)!, ...model.tokenizer.encode('zebra')];
  for (const [i, id] of pieces.entries())
    expect(weights[i + 1]).toBeCloseTo(model.session.tokenWeights![id]!, 5);
});

it('may have few bits and pooled rows, whose codes are refined', async () => {
  const { document } = await add(source, '--row-bits', '4', '--pool-factor', '2');
  expect(document).toMatchObject({ row_bits: 4, pool_factor: 2, best_ten: { passages: 1_000 } });
  expect((await loadModel(document.directory)).session.moment).toHaveLength(dim * dim);
});

it('may be named by its graph, in the folder or beside the tokenizer', async () => {
  expect((await add(path.join(source, 'onnx/model.onnx'))).document).toMatchObject({ version: '1' });
  renameSync(path.join(source, 'onnx/model.onnx'), path.join(source, 'graph.onnx'));
  rmSync(path.join(source, 'onnx'), { recursive: true });
  expect((await add(path.join(source, 'graph.onnx'))).document).toMatchObject({ version: '2' });
});

it('is refused with its reason if something is missing, or says otherwise', async () => {
  change('config.json', { hidden_size: 32 });
  expect(await refused(source)).toContain('16 dimensions, the model says 32');
  change('config.json', { hidden_size: 'many' });
  expect(await refused(source)).toContain('hidden_size');
  rmSync(path.join(source, 'config.json'));
  expect(await refused(source)).toContain('no config.json');
});

it('has rows of 2 bits that are pooled by 3 from 256 dimensions on', async () => {
  const { config } = await readEmbeddingExport(source, readdirSync(source), 'onnx/model.onnx');
  expect(config['maxsimd']).not.toHaveProperty('row_bits');
  change('config.json', { hidden_size: undefined, dim: 256 });
  const wide = await readEmbeddingExport(source, readdirSync(source), 'onnx/model.onnx');
  expect(wide.config['maxsimd']).toMatchObject({ row_bits: 2, pool_factor: 3 });
});

it('has the positions that its backbone leaves', async () => {
  change('config.json', { model_type: 'xlm-roberta', pad_token_id: 1, max_position_embeddings: 40 });
  const { document } = await add(source);
  expect((await loadModel(document.directory)).rules.queryPositionsMax).toBe(38);
});

describe('weights of tokens', () => {
  it('follow the ranks of merges in BPE, where bytes are the most frequent', () => {
    const merged = Array.from({ length: 2_000 }, (_, rank) => 'a'.repeat(rank + 2));
    const vocab = Object.fromEntries(['a', ...merged].map((piece, id) => [piece, id]));
    const merges = merged.map((piece, rank) =>
      rank % 2 === 0 ? `a ${piece.slice(1)}` : ['a', piece.slice(1)],
    );
    // Special tokens come behind the vocabulary.
    const added = [
      { id: 2_001, special: true },
      { id: 2_002, special: false },
    ];
    const { values } = tokenWeightsOf({ added_tokens: added, model: { type: 'BPE', vocab, merges } })!;
    expect(values[0]).toBeLessThan(values[1_000]!);
    expect(values[1_000]).toBeLessThan(values[2_000]!);
    expect(values[2_001]).toBe(0);
    expect(values[2_002]).toBeGreaterThanOrEqual(values[2_000]!);
  });

  it('follow log probabilities in Unigram, where unknown text is the rarest', () => {
    const vocab = [
      ['<unk>', 0],
      ['\u2581the', -3],
      ['\u2581zebra', -12],
    ];
    const { values } = tokenWeightsOf({ model: { type: 'Unigram', unk_id: 0, vocab } })!;
    expect(values[1]! * 4).toBeCloseTo(values[2]!, 5);
    expect(values[0]).toBe(values[2]);
  });

  it('are all the same in a vocabulary of another kind', () => {
    expect(tokenWeightsOf({ model: { type: 'WordLevel', vocab: {} } })).toBeUndefined();
  });
});

describe('graphs with dynamic quantisation are refused', () => {
  it('by name, and the f32 graph of the directory is named', async () => {
    const quantised = path.join(source, 'onnx/model_quantized.onnx');
    const plain = path.join(source, 'onnx/model.onnx');
    expect(await refused(quantised)).toContain(`depend on the texts beside it: add ${plain}`);
    // The quantised one lies beside the tokenizer, under the usual name.
    renameSync(quantised, path.join(source, 'model.onnx'));
    expect(await refused(source)).toContain(`: add ${plain}`);
  });

  it('if there is no other one, and the message says what to take', async () => {
    rmSync(path.join(source, 'onnx/model.onnx'));
    expect(await refused(source)).toContain('add the f32 graph, which model hubs have as onnx/model.onnx');
    cpSync(path.join(source, 'onnx/model_quantized.onnx'), path.join(source, 'onnx/model.onnx'));
    // Two quantised ones are no better.
    expect(await refused(path.join(source, 'onnx/model_quantized.onnx'))).toContain(
      'add the f32 graph, which',
    );
  });
});

describe('exports with random weights', () => {
  const exports = path.resolve(import.meta.dirname, '../../fixtures/embeddings');
  const positions = async (name: string): Promise<unknown> => {
    const directory = path.join(exports, name);
    return (await readEmbeddingExport(directory, readdirSync(directory), 'onnx/model.onnx')).config;
  };

  it('of ModernBERT have 8,192 positions, and of XLM-R two fewer than 514', async () => {
    expect(await positions('modernbert')).toMatchObject({ query_length: 8_192, document_length: 8_192 });
    expect(await positions('xlm-roberta')).toMatchObject({
      maxsimd: { position_limit: 512 },
      document_prefix: 'passage: ',
    });
  });

  it('say how tokens are weighted', async () => {
    for (const [name, by] of [
      ['modernbert', 'ranks of merges'],
      ['xlm-roberta', 'log probabilities'],
    ] as const) {
      const directory = path.join(exports, name);
      const { weights } = await readEmbeddingExport(directory, readdirSync(directory), 'onnx/model.onnx');
      expect(weights?.source).toContain(by);
    }
  });
});
