/**
 * A copy of the tiny model that cannot encode three words. With `spoiling` the graph gives NaN, with `failing` it fails, and with
 * `crashing` the process dies. The real encoder serves it.
 */
import { cp, readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll } from 'vitest';
import { newDirectory } from '../machine/temporary-directory.ts';
import { tinyModel } from './models.ts';

export interface FailingModel {
  readonly directory: string;
  readonly words: { readonly spoiling: string; readonly failing: string; readonly crashing: string };
  /** `NODE_OPTIONS` of the encoder. Without them `crashing` is an ordinary word. */
  readonly nodeOptions: string;
}

interface TokenizerFile {
  readonly model: { readonly vocab: Record<string, number> };
}

/** As in test/fixtures/colbert-tiny/generate.py. */
const hidden = 16;
const embeddingValue = (token: number, column: number): number =>
  Math.sin(12.9898 * token + 78.233 * column + 1);

/** Makes the model directory. It is removed after the tests of the file. */
export async function makeFailingModel(): Promise<FailingModel> {
  const root = await newDirectory();
  // A model directory is NAME/VERSION.
  const directory = path.join(root, 'colbert-tiny', '1');
  await cp(tinyModel, directory, { recursive: true });
  const words = { spoiling: 'small', failing: 'models', crashing: 'query' };

  const tokenizerFile = path.join(directory, 'tokenizer.json');
  const tokenizer = JSON.parse(await readFile(tokenizerFile, 'utf8')) as TokenizerFile;
  const { vocab } = tokenizer.model;
  const spoilingId = vocab[words.spoiling]!;
  // This id is beyond the embedding table.
  vocab[words.failing] = 1_000_000;
  await writeFile(tokenizerFile, JSON.stringify(tokenizer));

  const graphFile = path.join(directory, 'model.onnx');
  const graph = await readFile(graphFile);
  const row = Float32Array.from({ length: hidden }, (_, column) => embeddingValue(spoilingId, column));
  // The first values are rounded float64 values, so that the last bit of a sine does not matter.
  const at = graph.indexOf(Buffer.from(row.buffer, 0, 8));
  if (at < 0) throw new Error('this is a bug: the embedding of a word is not where it was');
  Buffer.from(new Float32Array(hidden).fill(Number.NaN).buffer).copy(graph, at);
  await writeFile(graphFile, graph);
  const crashFile = path.join(root, 'crash.mjs');
  await writeFile(crashFile, crashProgram(vocab[words.crashing]!));
  return {
    directory,
    words,
    nodeOptions: `--import ${pathToFileURL(crashFile).href}`,
  };
}

/** Makes the model for encoders that the tests of the file spawn. In these, `crashing` ends the process. */
export async function serveFailingModel(): Promise<FailingModel> {
  const model = await makeFailingModel();
  process.env['NODE_OPTIONS'] = model.nodeOptions;
  afterAll(() => {
    delete process.env['NODE_OPTIONS'];
  });
  return model;
}

/** Runs before the encoder's own code, in each of its threads. */
function crashProgram(crashingId: number): string {
  const runtime = pathToFileURL(createRequire(import.meta.url).resolve('onnxruntime-common')).href;
  return `
    import { isMainThread } from 'node:worker_threads';
    if (!isMainThread) {
      const { InferenceSession } = (await import(${JSON.stringify(runtime)})).default;
      const { run } = InferenceSession.prototype;
      InferenceSession.prototype.run = function (feeds, ...rest) {
        if (feeds.input_ids.data.includes(${crashingId}n)) process.kill(process.pid, 'SIGKILL');
        return run.call(this, feeds, ...rest);
      };
    }
  `;
}
