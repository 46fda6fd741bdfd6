/** `maxsimd models add --row-bits`: rows of few bits are installed, and compared with f32 rows on texts. */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { beforeEach, expect, it } from 'vitest';
import { addModel } from '../../../src/cli/models/add.ts';
import { readSampleTexts } from '../../../src/cli/models/best-ten.ts';
import { Interruption } from '../../../src/cli/failure.ts';
import { loadModel } from '../../../src/encoder/model/served-model.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { runJson, runJsonHere } from '../../support/commands/command-process.ts';
import { runHere, type RunOptions } from '../../support/commands/command-here.ts';

const tiny = path.resolve(import.meta.dirname, '../../fixtures/colbert-tiny/1');
let models: string;
let source: string;
let textsFile: string;
let options: RunOptions;

beforeEach(async () => {
  const directory = await newDirectory();
  models = path.join(directory, 'models');
  source = path.join(directory, 'an-export');
  textsFile = path.join(directory, 'texts.txt');
  mkdirSync(source);
  for (const file of ['model.onnx', 'tokenizer.json', 'onnx_config.json'])
    cpSync(path.join(tiny, file), path.join(source, file));
  options = { environment: { MAXSIMD_MODELS_DIR: models, MAXSIMD_DATA_DIR: path.join(directory, 'data') } };
});

const add = (...args: string[]): ReturnType<typeof runJsonHere> =>
  runJsonHere(['models', 'add', source, ...args], options);

/** Nothing is left of a model that was refused, not even halfway. */
function expectNothingInstalled(): void {
  expect(existsSync(models) ? readdirSync(models) : []).toEqual([]);
}

it('more bits find more of the best ten by f32 rows', async () => {
  const found: number[] = [];
  for (const bits of [1, 2, 4]) {
    const { document } = await add('--row-bits', String(bits));
    expect(document).toMatchObject({ row_bits: bits, best_ten: { passages: 1_000, queries: 100 } });
    expect((await loadModel(document.directory)).rowBits).toBe(bits);
    found.push(document.best_ten.found);
  }
  expect(found).toEqual(found.toSorted((a, b) => a - b));
  expect(found[0]).toBeLessThan(found[1]!);
  expect(found[2]).toBeGreaterThan(5);
  expect(found[2]).toBeLessThan(10);
});

it('texts of the user are encoded instead, and the share is printed', async () => {
  const { queries, passages } = await readSampleTexts();
  writeFileSync(textsFile, `${[...queries, ...passages, 'one more'].join('\r\n')}\n\n`);
  const args = ['models', 'add', source, '--row-bits', '4', '--texts', textsFile];
  const { stdout, stderr } = await runHere(args, options);
  expect(stdout).toMatch(
    /^Of the best ten passages by f32 rows, [5-9]\.\d are found with 4 bits \(1,001 passages, 100 queries\)\.$/m,
  );
  expect(stdout).toContain('16 of 4 bits');
  // A slow machine sees the progress.
  expect(stderr.replaceAll(/^maxsimd: (?:nothing done yet|\d+%, .*)\n/gm, '')).toBe('');
});

it('8 bits stay the default, and nothing is compared', async () => {
  const plain = await add();
  expect(plain.document).toMatchObject({ version: '1', row_bits: 8 });
  expect(plain.document).not.toHaveProperty('best_ten');
  const asked = await add('--row-bits', '8');
  expect(asked.document).toMatchObject({ version: '2', row_bits: 8 });
  const config = readFileSync(path.join(asked.document.directory, 'onnx_config.json'), 'utf8');
  expect(JSON.parse(config).maxsimd).toEqual({ row_bits: 8 });
});

it('the bits that an export states are kept, with its other keys', async () => {
  const file = path.join(source, 'onnx_config.json');
  const config = JSON.parse(readFileSync(file, 'utf8'));
  writeFileSync(file, JSON.stringify({ ...config, maxsimd: { row_bits: 2, position_limit: 20 } }));
  const { document } = await add();
  expect(document).toMatchObject({ row_bits: 2, best_ten: { queries: 100 } });
  const other = await add('--row-bits', '4');
  const installed = readFileSync(path.join(other.document.directory, 'onnx_config.json'), 'utf8');
  expect(JSON.parse(installed).maxsimd).toEqual({
    row_bits: 4,
    position_limit: 20,
    moment: 'moment.f16',
  });
  // It has a manifest now.
  source = other.document.directory;
  const again = await add('--row-bits', '1', '--version', '3');
  expect(again.document.error.message).toContain('has a manifest, and its rows stay as they are');
});

it.each([
  ['2', 2],
  ['8', 8],
])('pooled rows of %s bits are installed, and find fewer of the best ten', async (bits, rowBits) => {
  const { document: whole } = await add('--row-bits', bits);
  const { document } = await add('--row-bits', bits, '--pool-factor', '2');
  expect(document).toMatchObject({ row_bits: rowBits, pool_factor: 2, best_ten: { passages: 1_000 } });
  expect(document.best_ten.found).toBeGreaterThan(3);
  // Rows of 8 bits that are not pooled are not compared.
  expect(document.best_ten.found).toBeLessThan(whole.best_ten?.found ?? 10);
  const model = await loadModel(document.directory);
  expect([model.poolFactor, model.session.moment?.length]).toEqual([
    2,
    bits === '2' ? model.dim ** 2 : undefined,
  ]);
  // A directory with a manifest is installed as it is.
  source = document.directory;
  const again = await add('--version', '9');
  expect(again.document).toMatchObject({ pool_factor: 2, best_ten: document.best_ten });
  const refused = await add('--pool-factor', '3', '--version', '10');
  expect(refused.document.error.message).toContain('has a manifest, and its rows stay as they are');
});

it('the matrix that codes are refined with is a file of the manifest, and a damaged one is refused', async () => {
  const { document } = await add('--row-bits', '1');
  const read = (file: string): Buffer => readFileSync(path.join(document.directory, file));
  const { files, ...manifest } = JSON.parse(read('manifest.json').toString());
  expect(Object.keys(files)).toContain('moment.f16');
  delete files['moment.f16'];
  writeFileSync(path.join(document.directory, 'manifest.json'), JSON.stringify({ ...manifest, files }));
  await expect(loadModel(document.directory)).rejects.toThrow('has no checksum in the manifest');
  const moment = read('moment.f16');
  rmSync(path.join(document.directory, 'manifest.json'));
  for (const [damaged, reason] of [
    [moment.subarray(2), 'bytes, not'],
    [Buffer.alloc(moment.length, 0xff), 'no finite numbers'],
  ] as const) {
    writeFileSync(path.join(document.directory, 'moment.f16'), damaged);
    await expect(loadModel(document.directory)).rejects.toThrow(reason);
  }
});

it.each(['3', '0', '16', 'two', ''])('%j bits are refused', async (bits) => {
  const { exitCode, document } = await add('--row-bits', bits);
  expect(exitCode).toBe(2);
  expect(document.error.code).toBe('usage_error');
  expect(document.error.message).toContain('1, 2, 4, 8');
  expectNothingInstalled();
});

it.each<[string, string[], string]>([
  [
    'too few',
    ['--row-bits', '2'],
    'has 1099 texts, and at least 1100 are needed: 100 queries, then 1000 passages',
  ],
  ['for rows of 8 bits', [], 'add --row-bits 1, 2 or 4'],
])('texts are refused: %s', async (_, args, reason) => {
  writeFileSync(textsFile, 'a text\n'.repeat(1_099));
  const { exitCode, document } = await add(...args, '--texts', textsFile);
  expect(exitCode).toBe(1);
  expect(document.error.message).toContain(reason);
  expectNothingInstalled();
});

it('texts that cannot be read are refused', async () => {
  expect((await add('--row-bits', '2', '--texts', textsFile)).document.error.message).toContain(
    'cannot read',
  );
  writeFileSync(`${textsFile}.gz`, 'not gzipped');
  const { document } = await add('--row-bits', '2', '--texts', `${textsFile}.gz`);
  expect(document.error.message).toContain('cannot read');
  expectNothingInstalled();
});

it('a graph that states its own rows of 8 bits has no few bits', async () => {
  const file = path.join(source, 'onnx_config.json');
  const config = JSON.parse(readFileSync(file, 'utf8'));
  const maxsimd = { int8_output: 'document_int8', scale_output: 'document_scale' };
  writeFileSync(file, JSON.stringify({ ...config, maxsimd }));
  const { document } = await add('--row-bits', '2');
  expect(document.error.message).toContain('row_bits below 8 excludes int8_output');
  expectNothingInstalled();
});

it.each([
  ['2', 'bytes differ)'],
  ['8', 'steps of 8 bits)'],
])('vectors that depend on the batch are refused with %s bits', async (bits, reason) => {
  const program = path.join(path.dirname(source), 'dependent.mjs');
  writeFileSync(program, dependentOnBatch());
  const environment = { ...options.environment, NODE_OPTIONS: `--import ${pathToFileURL(program).href}` };
  const { document } = await runJson(['models', 'add', source, '--row-bits', bits], { environment });
  expect(document.error.message).toContain('depend on the texts beside it');
  expect(document.error.message).toContain(reason);
  expectNothingInstalled();
});

/** Runs before the encoder's own code, in each of its threads: as dynamic quantisation does, it makes steps of a batch's own. */
function dependentOnBatch(): string {
  const runtime = pathToFileURL(createRequire(import.meta.url).resolve('onnxruntime-common')).href;
  return `
    import { InferenceSession } from ${JSON.stringify(runtime)};
    const { run } = InferenceSession.prototype;
    InferenceSession.prototype.run = async function (feeds, ...rest) {
      const outputs = await run.call(this, feeds, ...rest);
      const step = 0.01 * feeds.input_ids.dims[0];
      const { data } = outputs.output;
      for (let i = 0; i < data.length; i += 1) data[i] = Math.round(data[i] / step) * step;
      return outputs;
    };
  `;
}

it('Ctrl-C while texts are encoded leaves nothing', async () => {
  const stopped = {
    stderr: { write: () => true } as unknown as NodeJS.WriteStream,
    interruption: () => AbortSignal.abort(new Interruption('SIGINT')),
  };
  await expect(addModel([models, models], source, { rowBits: 2 }, stopped)).rejects.toThrow('SIGINT');
  expectNothingInstalled();
});
