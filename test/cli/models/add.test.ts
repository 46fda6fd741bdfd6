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
import { loadModel } from '../../../src/encoder/model/served-model.ts';
import { runJson, runJsonHere } from '../../support/commands/command-process.ts';
import { runHere, type RunOptions } from '../../support/commands/command-here.ts';

const tiny = path.resolve(import.meta.dirname, '../../fixtures/colbert-tiny/1');
const external = path.resolve(import.meta.dirname, '../../fixtures/colbert-tiny/external');
const exported = path.resolve(import.meta.dirname, '../../fixtures/exports');
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

const add = (...args: string[]): ReturnType<typeof runJsonHere> =>
  runJsonHere(['models', 'add', ...args], options);

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
  const verified = await runJsonHere(['models', 'verify'], options);
  expect(verified.document).toMatchObject({ damaged: 0 });
  const added = verified.document.data.filter(({ directory: place }: { directory: string }) =>
    place.startsWith(models),
  );
  expect(added).toHaveLength(3);
  const again = await add(source, '--version', '1');
  expect(again.document.error.message).toContain('a version never changes');
});

it('files that a version shares with another one are copied', async () => {
  await add(source);
  const installed = path.join(models, 'an-export');
  const sharing = path.join(installed, '2');
  mkdirSync(sharing);
  for (const name of ['manifest.json', 'onnx_config.json'])
    cpSync(path.join(installed, '1', name), path.join(sharing, name));
  const manifest = JSON.parse(readFileSync(path.join(sharing, 'manifest.json'), 'utf8'));
  writeFileSync(
    path.join(sharing, 'manifest.json'),
    JSON.stringify({ ...manifest, version: '2', shares: '1' }),
  );
  expect((await runJsonHere(['models', 'verify'], options)).document).toMatchObject({ damaged: 0 });
  const elsewhere = path.join(directory, 'elsewhere');
  options = { environment: { ...options.environment, MAXSIMD_MODELS_DIR: elsewhere } };
  expect(await add(sharing)).toMatchObject({ exitCode: 0, document: { version: '2' } });
  await expect(loadModel(path.join(elsewhere, 'an-export/2'))).resolves.toMatchObject({ version: '2' });
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

it('weights in files of any name come with the graph that names them, and are checked with it', async () => {
  cpSync(external, source, { recursive: true });
  // A file that no tensor names is not copied.
  writeFileSync(path.join(source, 'model.onnx.data'), 'of another graph');
  expect((await add(source)).document.version).toBe('1');
  const installed = path.join(models, 'an-export/1');
  const { files } = JSON.parse(readFileSync(path.join(installed, 'manifest.json'), 'utf8'));
  expect(Object.keys(files).toSorted()).toEqual([
    'model.onnx',
    'onnx_config.json',
    'projection',
    'tokenizer.json',
    'weights/of tokens.bin',
  ]);
  // The whole directory can be installed elsewhere, and no part of it can be missing or change unseen.
  expect((await add(installed, '--version', '2')).document.version).toBe('2');
  writeFileSync(path.join(models, 'an-export/2/weights/of tokens.bin'), 'other weights');
  const { exitCode, document } = await runJsonHere(['models', 'verify'], options);
  expect(exitCode).toBe(1);
  expect(document.damaged).toBe(1);
  delete files.projection;
  const manifest = JSON.parse(readFileSync(path.join(installed, 'manifest.json'), 'utf8'));
  writeFileSync(path.join(installed, 'manifest.json'), JSON.stringify({ ...manifest, files }));
  expect(await refusedElsewhere(installed)).toContain('projection, which the manifest does not name');
});

it('a graph whose weights are not there, or in the place of another file, is refused', async () => {
  cpSync(external, source, { recursive: true });
  rmSync(path.join(source, 'weights'), { recursive: true });
  expect(await refused(source)).toContain('of tokens.bin');
  const graph = readFileSync(path.join(external, 'model.onnx'), 'latin1');
  writeFileSync(
    path.join(source, 'model.onnx'),
    graph.replace('weights/of tokens.bin', '../weights/tokens.bin'),
    'latin1',
  );
  expect(await refused(source)).toContain('a file outside its directory: "../weights/tokens.bin"');
  writeFileSync(path.join(source, 'model.onnx'), graph.replace('projection', 'model.onnx'), 'latin1');
  expect(await refused(source)).toContain('keeps weights in model.onnx');
});

it('a prefix may be several tokens, which stand before every query and every window of a document', async () => {
  const prefixes = { query_prefix: 'the query: ', document_prefix: 'document ' };
  change('onnx_config.json', { ...prefixes, query_prefix_id: null, document_prefix_id: null });
  expect((await add(source)).document).toMatchObject({ version: '1', window_tokens_max: 21 });
  const installed = path.join(models, 'an-export/1');
  const { rules, tokenizer } = await loadModel(installed);
  const head = (text: string): number[] => [...tokenizer.head, ...tokenizer.encode(text)];
  expect(rules.queryHead).toEqual(head('the query:'));
  expect(rules.queryHead).toHaveLength(4);
  expect(rules.documentHead).toEqual(head('document'));
  const manifest = JSON.parse(readFileSync(path.join(installed, 'manifest.json'), 'utf8'));
  for (const { input_ids: ids } of manifest.golden) {
    expect(ids).toHaveLength(12);
    expect(ids.slice(0, 4)).toEqual(rules.queryHead);
  }
  const printed = await runHere(['models', 'add', source], options);
  expect(printed.stdout).toContain('3 tokens for queries, 1 token for documents');
  change('onnx_config.json', { query_prefix: 'früher 東京: ' });
  expect((await add(source)).document.error.message).toContain(
    'does not know all of the prefix "früher 東京: "',
  );
});

it('words of the skip-list that are no token are pointed out', async () => {
  change('onnx_config.json', { skiplist_words: ['.', 'two words', '東京'] });
  expect((await add(source)).document.notes).toEqual([
    expect.stringContaining('two words 東京; unknown tokens'),
  ]);
});

it.each(['pylate/xlm-roberta', 'multi-vector/bert-min', 'multi-vector/modernbert-fixed'])(
  'what models/convert.sh makes is installed: %s',
  async (name) => {
    expect(await add(path.join(exported, name))).toMatchObject({
      exitCode: 0,
      document: { dim: 16, version: '1' },
    });
  },
);

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
});

it.each<[string, () => void, string]>([
  ['without a tokenizer', () => rmSync(path.join(source, 'tokenizer.json')), 'has no tokenizer.json'],
  ['without a graph', () => rmSync(path.join(source, 'model.onnx')), 'has no .onnx file'],
  ['without its keys', () => rmSync(path.join(source, 'onnx_config.json')), 'embedding_dim'],
  ['with a damaged graph', () => writeFileSync(path.join(source, 'model.onnx'), 'x'), 'not an ONNX graph'],
  ['with an empty graph', () => writeFileSync(path.join(source, 'model.onnx'), ''), 'does not run'],
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
  const { document } = await runJson(['models', 'add', source], { environment });
  expect(document.error.message).toMatch(
    /a document of 24 tokens: the model gave values that are no numbers/,
  );
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

it('a graph whose vectors are of half precision is refused by the types, by an encoder too', async () => {
  // The graph, and behind it a part that Protocol Buffers join to it: a node Cast, and its output of float16.
  const field = (number: number, content: string | readonly number[]): readonly number[] => {
    const bytes = typeof content === 'string' ? [...Buffer.from(content)] : content;
    return [number * 8 + 2, bytes.length, ...bytes];
  };
  const float16 = 10;
  // The attribute `i`, and `type`: an integer.
  const to = [...field(1, 'to'), 3 * 8, float16, 0xa0, 1, 2];
  const cast = [...field(1, 'output'), ...field(2, 'halves'), ...field(4, 'Cast'), ...field(5, to)];
  const halves = [...field(1, 'halves'), ...field(2, field(1, [1 * 8, float16]))];
  const part = field(7, [...field(1, cast), ...field(12, halves)]);
  const graph = path.join(source, 'model.onnx');
  writeFileSync(graph, Buffer.concat([readFileSync(graph), Buffer.from(part)]));
  change('onnx_config.json', { maxsimd: { output: 'halves' } });
  expect(await refused(source)).toMatch(
    /^the model does not run: .*output halves of the graph is of the type float16, not float32: .*keep_io_types/,
  );
});

it('what is no path, or no name, is refused', async () => {
  expect(await refused(path.join(directory, 'nowhere'))).toContain('cannot read');
  expect(await refused(path.join(source, 'tokenizer.json'))).toContain(
    'neither a directory nor an .onnx file',
  );
  expect(await refused(source, '--name', '../evil')).toContain('--name');
  const printed = await runHere(['models', 'add', source], options);
  expect(printed.stdout).toContain('create an index with "model": "an-export"');
});
