/**
 * Reads the export of an embedding model as a model for late interaction. Its token states are vectors that MaxSim compares, once
 * they have length 1. Query tokens have weights: rare words count for more (`token-weights.ts`).
 *
 * Such an export is what model hubs have: `model.onnx`, `tokenizer.json`, `config.json` of transformers, and prompts in
 * `config_sentence_transformers.json`. Nothing of the graph changes.
 */
import path from 'node:path';
import { z } from 'zod';
import { inputError } from '../failure.ts';
import { graphNames } from './graph-files.ts';
import { readJsonFile } from './json-file.ts';
import { type TokenWeights, tokenWeightsOf } from './token-weights.ts';

export interface EmbeddingExport {
  /** Content of `onnx_config.json`. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly weights: TokenWeights | undefined;
}

/** Outputs with a vector for each token, as exporters name them. */
const tokenOutputs = ['last_hidden_state', 'token_embeddings'];

/** With these, position 0 belongs to the token after the id of the padding token. */
const offsetPositions = new Set(['roberta', 'xlm-roberta', 'xlm-roberta-xl', 'camembert', 'mpnet']);

/** From so many dimensions on, rows of 2 bits that are pooled by 3 keep nearly all. */
const fewBitsDimMin = 256;
const fewBits = { row_bits: 2, pool_factor: 3 };

const width = z.number().int().min(1).max(1024);
const modelSchema = z.looseObject({
  model_type: z.string(),
  hidden_size: width.optional(),
  /** The same in DistilBERT. */
  dim: width.optional(),
  max_position_embeddings: z.number().int().min(4),
  pad_token_id: z.number().int().nonnegative().nullish(),
});
const tokenizerSchema = z.looseObject({ model_max_length: z.number().optional() });
const promptsSchema = z.looseObject({ prompts: z.record(z.string(), z.string()).default({}) });

/** `entries`: the files of the directory. `graph`: its path from there. */
export async function readEmbeddingExport(
  directory: string,
  entries: readonly string[],
  graph: string,
): Promise<EmbeddingExport> {
  const read = async <T extends z.ZodType>(name: string, schema: T): Promise<z.output<T> | undefined> =>
    entries.includes(name) ? readJsonFile(schema, path.join(directory, name)) : undefined;
  const model = await read('config.json', modelSchema);
  if (model === undefined)
    throw inputError(`${directory} has no onnx_config.json with an embedding_dim, and no config.json`);
  const dim = model.hidden_size ?? model.dim;
  if (dim === undefined) throw inputError(`${directory}: config.json has no hidden_size`);
  const { inputs, outputs } = await graphNames(path.join(directory, graph));
  const output = tokenOutputs.find((name) => outputs.includes(name));
  if (output === undefined) {
    throw inputError(
      `${graph} has no output named ${tokenOutputs.join(' or ')}, which has a vector for each token: its outputs are ${outputs.join(', ')}`,
    );
  }
  const tokenizer = await readJsonFile(z.looseObject({}), path.join(directory, 'tokenizer.json'));
  const { prompts } = (await read('config_sentence_transformers.json', promptsSchema)) ?? { prompts: {} };
  const positions = positionsOf(model, await read('tokenizer_config.json', tokenizerSchema));
  const weights = tokenWeightsOf(tokenizer);
  return {
    config: {
      query_prefix: prompts['query'] ?? '',
      document_prefix: prompts['document'] ?? prompts['passage'] ?? '',
      query_length: positions,
      document_length: positions,
      do_query_expansion: false,
      embedding_dim: dim,
      uses_token_type_ids: inputs.includes('token_type_ids'),
      pad_token_id: model.pad_token_id ?? 0,
      maxsimd: {
        prompts: true,
        position_limit: positions,
        output,
        normalise: true,
        ...(weights === undefined ? {} : { token_weights: weights.file }),
        ...(dim >= fewBitsDimMin ? fewBits : {}),
      },
    },
    weights,
  };
}

/** A tokenizer without a limit says a number that is larger than any. */
function positionsOf(
  { model_type: type, max_position_embeddings: all, pad_token_id: padding }: z.output<typeof modelSchema>,
  tokenizer: z.output<typeof tokenizerSchema> | undefined,
): number {
  const first = offsetPositions.has(type) ? (padding ?? 0) + 1 : 0;
  return Math.min(all - first, tokenizer?.model_max_length ?? Infinity);
}
