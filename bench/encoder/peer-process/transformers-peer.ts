/**
 * The model through Transformers.js: a feature-extraction pipeline on arrays of texts, as its documentation shows, at its fastest
 * batch size. It runs our graph and tokenizer, or the graphs that its own tools make of the same weights (`models/export.py`).
 * Our graph is cut to the one f32 output that it asks for, because it would copy the others for nothing.
 */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type Contender, fastestOf, type Mix, type RoundTiming } from '../contender.ts';
import { withSingleOutput } from './single-output-graph.ts';
import { timed } from './timed.ts';

const batchSizes = [1, 2, 4, 8, 16];
/** Texts that a sweep runs for each batch size. */
const sweepTexts = 16;

/** The part of the library that the benchmark uses. */
interface Library {
  readonly env: { allowRemoteModels: boolean; allowLocalModels: boolean; localModelPath: string };
  pipeline(task: 'feature-extraction', model: string, options: object): Promise<Pipeline>;
}
type Pipeline = ((texts: readonly string[]) => Promise<{ readonly data: Float32Array }>) & {
  dispose(): Promise<unknown>;
};

export type TransformersName =
  | 'transformers_js'
  | 'transformers_js_export_int8'
  | 'transformers_js_export_f32';

/** `peersDirectory` is where the library is installed; `exportDirectory` is what `models/export.py` wrote, if it did. */
export async function openTransformersPeers(
  modelDirectory: string,
  peersDirectory: string,
  threads: number,
  exportDirectory: string | undefined,
): Promise<Readonly<Partial<Record<TransformersName, Contender>>>> {
  const models = mkdtempSync(path.join(tmpdir(), 'maxsimd-bench-model-'));
  try {
    const library = createRequire(path.join(peersDirectory, 'package.json'))(
      '@huggingface/transformers',
    ) as Library;
    library.env.allowRemoteModels = false;
    library.env.allowLocalModels = true;
    library.env.localModelPath = models;
    const open = async (name: string, dtype: 'fp32' | 'q8'): Promise<Contender> =>
      new Transformers(
        await library.pipeline('feature-extraction', name, {
          dtype,
          device: 'cpu',
          session_options: { intraOpNumThreads: threads },
        }),
      );
    layOut(modelDirectory, path.join(models, 'ours'));
    const graph = withSingleOutput(
      readFileSync(path.join(modelDirectory, 'model.onnx')),
      'output',
      'last_hidden_state',
    );
    writeFileSync(path.join(models, 'ours', 'onnx', 'model.onnx'), graph);
    // The library calls a graph named model.onnx `fp32`, whatever its types are.
    const ours = { transformers_js: await open('ours', 'fp32') };
    if (exportDirectory === undefined) return ours;
    layOut(exportDirectory, path.join(models, 'export'));
    for (const name of ['model.onnx', 'model_quantized.onnx']) {
      copyFileSync(path.join(exportDirectory, 'onnx', name), path.join(models, 'export', 'onnx', name));
    }
    return {
      ...ours,
      transformers_js_export_int8: await open('export', 'q8'),
      transformers_js_export_f32: await open('export', 'fp32'),
    };
  } finally {
    rmSync(models, { recursive: true });
  }
}

class Transformers implements Contender {
  readonly #pipeline: Pipeline;
  #mix: Mix | undefined;
  #batchSize = 1;

  constructor(pipeline: Pipeline) {
    this.#pipeline = pipeline;
  }

  async prepare(mix: Mix): Promise<string> {
    this.#mix = mix;
    // One in flight is one text a call: nothing to choose.
    const choices = mix.kind === 'query' && mix.inFlight === 1 ? [1] : batchSizes;
    const texts = mix.texts.slice(0, sweepTexts);
    this.#batchSize = await fastestOf(choices, async (size) => this.#encode(texts, size));
    return `batches of ${this.#batchSize}, best of ${choices.join(', ')}`;
  }

  async round(): Promise<RoundTiming> {
    const { texts } = this.#prepared();
    return timed(async () => this.#encode(texts, this.#batchSize));
  }

  async vectors(count: number): Promise<readonly Float32Array[]> {
    const result: Float32Array[] = [];
    for (const text of this.#prepared().texts.slice(0, count)) {
      result.push((await this.#pipeline([text])).data);
    }
    return result;
  }

  async close(): Promise<void> {
    await this.#pipeline.dispose();
  }

  async #encode(texts: readonly string[], batchSize: number): Promise<void> {
    for (let from = 0; from < texts.length; from += batchSize) {
      await this.#pipeline(texts.slice(from, from + batchSize));
    }
  }

  #prepared(): Mix {
    if (this.#mix === undefined) throw new Error('this is a bug: no mix was prepared');
    return this.#mix;
  }
}

/** Lays out a BERT directory as the library reads it, without the graphs. */
function layOut(from: string, to: string): void {
  mkdirSync(path.join(to, 'onnx'), { recursive: true });
  copyFileSync(path.join(from, 'tokenizer.json'), path.join(to, 'tokenizer.json'));
  const given = path.join(from, 'tokenizer_config.json');
  if (existsSync(given)) copyFileSync(given, path.join(to, 'tokenizer_config.json'));
  else write(path.join(to, 'tokenizer_config.json'), bertTokenizerConfig);
  write(path.join(to, 'config.json'), { model_type: 'bert', architectures: ['BertModel'] });
}

const bertTokenizerConfig = {
  tokenizer_class: 'BertTokenizer',
  model_max_length: 512,
  cls_token: '[CLS]',
  sep_token: '[SEP]',
  pad_token: '[PAD]',
  mask_token: '[MASK]',
  unk_token: '[UNK]',
};

function write(file: string, value: object): void {
  writeFileSync(file, JSON.stringify(value));
}
