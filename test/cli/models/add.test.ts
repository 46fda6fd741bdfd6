/** `maxsimd models add`: what exporters write is checked and installed, and what cannot be served is refused with its reason. */
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { run, runJson, type RunOptions } from '../../support/running/command-process.ts';

const tiny = path.resolve(import.meta.dirname, '../../fixtures/colbert-tiny/1');
const own = path.resolve(import.meta.dirname, '../../../models/minilm-l6-maxsim/1');

let directory: string;
let models: string;
let source: string;
let options: RunOptions;

beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), 'maxsimd-models-'));
  models = path.join(directory, 'models');
  source = path.join(directory, 'an-export');
  cpSync(tiny, source, { recursive: true });
  options = { environment: { MAXSIMD_MODELS_DIR: models, MAXSIMD_DATA_DIR: path.join(directory, 'data') } };
});

afterEach(() => rmSync(directory, { recursive: true }));

const add = (...args: string[]): ReturnType<typeof runJson> => runJson(['models', 'add', ...args], options);

/** Writes keys of a JSON file of the export anew. */
function change(file: string, keys: object): void {
  const full = path.join(source, file);
  writeFileSync(full, JSON.stringify({ ...JSON.parse(readFileSync(full, 'utf8')), ...keys }));
}

async function refused(...args: string[]): Promise<string> {
  const { exitCode, document } = await add(...args);
  expect(exitCode).toBe(1);
  expect(document.error.code).toBe('input_error');
  // Nothing is left of it, not even halfway.
  expect(readdirSync(directory).includes('models') ? readdirSync(models) : []).toEqual([]);
  return document.error.message;
}

it('an export becomes version 1 of a model of its name, with checksums and golden values; the next is version 2', async () => {
  const first = await add(source);
  expect(first).toMatchObject({ exitCode: 0, document: { name: 'an-export', version: '1', dim: 16 } });
  const manifest = JSON.parse(readFileSync(path.join(models, 'an-export/1/manifest.json'), 'utf8'));
  expect(Object.keys(manifest.files).toSorted()).toEqual([
    'model.onnx',
    'onnx_config.json',
    'tokenizer.json',
  ]);
  expect(manifest.golden.length).toBeGreaterThan(0);
  expect((await add(source)).document.version).toBe('2');
  expect((await add(source, '--name', 'other', '--version', '2026-11')).document.version).toBe('2026-11');
  const verified = await runJson(['models', 'verify'], options);
  expect(verified.document).toMatchObject({ damaged: 0 });
  expect(verified.document.data).toHaveLength(4);
  const again = await add(source, '--version', '1');
  expect(again.document.error.message).toContain('a version never changes');
});

it('an encoder that computes something else of the golden texts does not serve', async () => {
  await add(source);
  const installed = path.join(models, 'an-export/1');
  const manifest = JSON.parse(readFileSync(path.join(installed, 'manifest.json'), 'utf8'));
  manifest.golden[0].rows[0].values[0] += 0.1;
  writeFileSync(path.join(installed, 'manifest.json'), JSON.stringify(manifest));
  expect(await refusedElsewhere(installed)).toContain('golden text');
});

/** The message of an `add` whose folder of models is another one. */
async function refusedElsewhere(given: string): Promise<string> {
  options = {
    environment: { ...options.environment, MAXSIMD_MODELS_DIR: path.join(directory, 'elsewhere') },
  };
  const { exitCode, document } = await add(given);
  expect(exitCode).toBe(1);
  return document.error.message;
}

it('the keys may be in the file that pylate-onnx-export 0.1.0 writes, and queries without expansion are pointed out', async () => {
  change('onnx_config.json', { do_query_expansion: false });
  renameSync(path.join(source, 'onnx_config.json'), path.join(source, 'config_sentence_transformers.json'));
  const { document } = await add(source);
  expect(document).toMatchObject({ version: '1', notes: [expect.stringContaining('not expanded')] });
});

it('a graph by another name is taken alone, or by its path where there are several', async () => {
  renameSync(path.join(source, 'model.onnx'), path.join(source, 'graph.onnx'));
  expect((await add(source)).document.version).toBe('1');
  cpSync(path.join(source, 'graph.onnx'), path.join(source, 'other.onnx'));
  expect((await add(source)).document.error.message).toContain('graph.onnx, other.onnx');
  expect((await add(path.join(source, 'other.onnx'))).document.version).toBe('2');
});

it('a model directory of ours keeps its name, version, variants and golden values', async () => {
  const copy = path.join(directory, 'copy');
  mkdirSync(copy);
  cpSync(own, copy, { recursive: true });
  expect((await add(copy)).document.error.message).toContain('is installed in');
  const { document } = await add(copy, '--version', '2');
  expect(document).toMatchObject({ name: 'minilm-l6-maxsim', version: '2', dim: 128 });
  const before = JSON.parse(readFileSync(path.join(own, 'manifest.json'), 'utf8'));
  const after = JSON.parse(readFileSync(path.join(models, 'minilm-l6-maxsim/2/manifest.json'), 'utf8'));
  expect(after).toMatchObject({ variants: before.variants, golden: before.golden });
}, 120_000);

it.each<[string, () => void, string]>([
  ['without a tokenizer', () => rmSync(path.join(source, 'tokenizer.json')), 'has no tokenizer.json'],
  ['without a graph', () => rmSync(path.join(source, 'model.onnx')), 'has no .onnx file'],
  ['without its keys', () => rmSync(path.join(source, 'onnx_config.json')), 'embedding_dim'],
  ['with a damaged graph', () => writeFileSync(path.join(source, 'model.onnx'), 'x'), 'does not run'],
  ['of other dimensions', () => change('onnx_config.json', { embedding_dim: 32 }), '16 dimensions'],
  [
    'with another prefix',
    () => change('onnx_config.json', { query_prefix_id: 6 }),
    'prefix "[unused0]" is token 6',
  ],
  ['with a prefix of nobody', () => change('onnx_config.json', { document_prefix: '[D] ' }), 'prefix "[D] "'],
  ['with no room for text', () => change('onnx_config.json', { document_length: 3 }), 'leaves no room'],
])('an export %s is refused with the reason', async (_, spoil, reason) => {
  spoil();
  expect(await refused(source)).toContain(reason);
});

it('an export that gives no numbers for long texts is refused with their length', async () => {
  const program = path.join(directory, 'no-numbers.mjs');
  writeFileSync(program, noNumbersBeyond(20));
  const environment = { ...options.environment, NODE_OPTIONS: `--import ${pathToFileURL(program).href}` };
  options = { environment };
  expect(await refused(source)).toMatch(/a document of 24 tokens: the model gave no numbers/);
});

/** Runs before the encoder's own code, in each of its threads: what an attention window that is left does to a graph. */
function noNumbersBeyond(positions: number): string {
  const runtime = pathToFileURL(createRequire(import.meta.url).resolve('onnxruntime-common')).href;
  return `
    import { InferenceSession } from ${JSON.stringify(runtime)};
    const { run } = InferenceSession.prototype;
    InferenceSession.prototype.run = async function (feeds, ...rest) {
      const outputs = await run.call(this, feeds, ...rest);
      if (feeds.input_ids.dims[1] > ${positions}) outputs.output.data.fill(NaN);
      return outputs;
    };
  `;
}

it('what is no path, or no name, is refused', async () => {
  expect(await refused(path.join(directory, 'nowhere'))).toContain('cannot read');
  expect(await refused(path.join(source, 'tokenizer.json'))).toContain(
    'neither a directory nor an .onnx file',
  );
  expect(await refused(source, '--name', '../evil')).toContain('--name');
  const printed = await run(['models', 'add', source], options);
  expect(printed.stdout).toContain('create an index with "model": "an-export"');
});
