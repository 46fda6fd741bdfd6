/** Loads a model for serving: its tokenizer, its rules, and the parameters of its sessions. */
import { createHash } from 'node:crypto';
import type { RowRules } from '../inference/rows.ts';
import { type ColbertRules, windowTokensMax } from './colbert-rules.ts';
import {
  type Manifest,
  type ModelDirectory,
  type ModelGraphs,
  type OnnxConfig,
  openModelDirectory,
} from './model-directory.ts';
import { ModelDirectoryError } from './model-directory-error.ts';
import {
  createTokenizer,
  packedOptions,
  type Prompt,
  type Tokenizer,
  type TokenizerOptions,
} from './tokenizer/tokenizer.ts';

/** The parameters of a session. */
export interface SessionModel extends RowRules {
  readonly graphs: ModelGraphs;
  readonly padId: number;
  readonly usesTokenTypeIds: boolean;
  /** Names of the quantised outputs; absent when the graph gives f32 only. */
  readonly int8Output: string | undefined;
  readonly scaleOutput: string | undefined;
  readonly tokenWeightOutput: string | undefined;
  /** The output with the token vectors, and whether they still need length 1. */
  readonly output: string;
  readonly normalise: boolean;
  /** f32 [vocabulary]: weights of query tokens that the graph does not give. A token beyond the end has weight 1. */
  readonly tokenWeights: Float32Array | undefined;
}

export interface ServedModel extends Pick<RowRules, 'dim' | 'rowBits' | 'poolFactor'> {
  readonly name: string;
  readonly version: string;
  readonly windowTokensMax: number;
  readonly tokenizer: Tokenizer;
  readonly tokenizerOptions: TokenizerOptions;
  readonly rules: ColbertRules;
  readonly session: SessionModel;
  readonly golden: Manifest['golden'];
}

/** Tokenizers in memory, by a digest of their options. */
type Tokenizers = Map<string, Pick<ServedModel, 'tokenizer' | 'tokenizerOptions'>>;

export interface ModelPaths {
  readonly required: readonly string[];
  readonly optional: readonly string[];
  /** Is told of each optional model that cannot be loaded. */
  readonly onLeftOut: (reason: ModelDirectoryError) => void;
}

/** Loads models. Those with the same tokenizer have one in memory. Errors are `ModelDirectoryError`s of required ones. */
export async function loadModels(paths: ModelPaths): Promise<readonly ServedModel[]> {
  const { required, optional, onLeftOut } = paths;
  const tokenizers: Tokenizers = new Map();
  const leaveOut = (error: unknown): undefined => {
    if (!(error instanceof ModelDirectoryError)) throw error;
    onLeftOut(error);
  };
  const models = await Promise.all([
    ...required.map(async (path) => loadModel(path, tokenizers)),
    ...optional.map(async (path) => loadModel(path, tokenizers).catch(leaveOut)),
  ]);
  return models.filter((model) => model !== undefined);
}

/** Reads and checks a model directory. Errors are `ModelDirectoryError`s. */
export async function loadModel(path: string, tokenizers: Tokenizers = new Map()): Promise<ServedModel> {
  const directory = await openModelDirectory(path);
  const { config } = directory;
  const prefixes = [config.query_prefix, config.document_prefix].map((prefix) => prefix ?? '');
  const { tokenizer, tokenizerOptions } = sharedTokenizer(directory, tokenizers, {
    tokenizer: directory.tokenizer,
    tokenizerConfig: directory.tokenizerConfig,
    specialStrings: prefixes.flatMap((prefix) => [prefix, prefix.trim()]),
    lowercase: config.do_lower_case,
    strip: config.maxsimd?.prompts !== true,
  });
  const rules = colbertRules(directory, tokenizer);
  const shape = {
    dim: config.embedding_dim,
    rowBits: config.maxsimd?.row_bits ?? 8,
    poolFactor: config.maxsimd?.pool_factor ?? 1,
  };
  return {
    name: directory.name,
    version: directory.version,
    ...shape,
    windowTokensMax: windowTokensMax(rules),
    tokenizer,
    tokenizerOptions,
    rules,
    session: {
      graphs: directory.graphs,
      ...shape,
      padId: config.pad_token_id,
      usesTokenTypeIds: config.uses_token_type_ids,
      int8Output: config.maxsimd?.int8_output,
      scaleOutput: config.maxsimd?.scale_output,
      tokenWeightOutput: config.maxsimd?.token_weight_output,
      output: config.maxsimd?.output ?? 'output',
      normalise: config.maxsimd?.normalise ?? false,
      tokenWeights: directory.tokenWeights,
      centring:
        config.maxsimd?.centring === undefined ? undefined : Float32Array.from(config.maxsimd.centring),
      moment: directory.moment,
    },
    golden: directory.manifest?.golden,
  };
}

function sharedTokenizer(
  directory: ModelDirectory,
  tokenizers: Tokenizers,
  options: TokenizerOptions,
): Pick<ServedModel, 'tokenizer' | 'tokenizerOptions'> {
  const digest = createHash('sha256').update(JSON.stringify(options)).digest('hex');
  const tokenizer = tokenizers.get(digest) ?? usableTokenizer(directory, options);
  tokenizers.set(digest, tokenizer);
  return tokenizer;
}

/** The library does not check the file. So any error of it means that the file is of no tokenizer that it knows. */
function usableTokenizer(
  { directory }: ModelDirectory,
  options: TokenizerOptions,
): Pick<ServedModel, 'tokenizer' | 'tokenizerOptions'> {
  try {
    const tokenizerOptions = packedOptions(options);
    return { tokenizer: createTokenizer(tokenizerOptions), tokenizerOptions };
  } catch (error) {
    throw new ModelDirectoryError(`${directory}: the tokenizer cannot be used: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/** The engine takes queries of so many token vectors (`queryTokensMax` of native/kernels/approximate/code_loops.h). */
const queryRowsMax = 512;

function colbertRules({ directory, config }: ModelDirectory, tokenizer: Tokenizer): ColbertRules {
  const positions = config.maxsimd?.position_limit;
  const expandedQueryMax = Math.max(config.query_length, config.maxsimd?.query_length_max ?? 0);
  const query = prefixOf(tokenizer, config, 'query');
  const document = prefixOf(tokenizer, config, 'document');
  const rules: ColbertRules = {
    queryHead: withPrefix(tokenizer, query.ids),
    documentHead: withPrefix(tokenizer, document.ids),
    queryLead: query.lead,
    documentLead: document.lead,
    tail: tokenizer.tail,
    // Expanded queries have the length that the model was trained with. Others may use every position.
    queryPositionsMax: Math.min(
      queryRowsMax,
      config.do_query_expansion ? expandedQueryMax : (positions ?? config.query_length),
    ),
    documentPositionsMax: positions ?? config.document_length,
    expansion: config.do_query_expansion
      ? {
          maskId: config.mask_token_id!,
          attended: config.attend_to_expansion_tokens,
          positions: Math.min(queryRowsMax, config.query_length),
        }
      : undefined,
    skipIds: new Set(
      config.skiplist_words
        // For a word that is no token PyLate skips the unknown token.
        .map((word) => tokenizer.idOf(word) ?? tokenizer.unknownId)
        .filter((id) => id !== undefined),
    ),
  };
  if (windowTokensMax(rules) < 1 || rules.queryPositionsMax <= rules.queryHead.length + rules.tail.length) {
    throw new ModelDirectoryError(`${directory}: query_length or document_length leaves no room for text`);
  }
  return rules;
}

/** The ids before a text. The prefix begins at position 1, whatever the tokenizer puts before a text. */
function withPrefix(tokenizer: Tokenizer, prefix: readonly number[]): number[] {
  return [...tokenizer.head.slice(0, 1), ...prefix, ...tokenizer.head.slice(1)];
}

/** The token of the configuration or of the vocabulary, or else the tokens of the prefix as a text. */
function prefixOf(tokenizer: Tokenizer, config: OnnxConfig, kind: 'query' | 'document'): Prompt {
  const prefix = config[`${kind}_prefix`] ?? '';
  const isToken = config.maxsimd?.prompts !== true;
  const id =
    config[`${kind}_prefix_id`] ??
    (isToken && prefix !== '' ? (tokenizer.idOf(prefix) ?? tokenizer.idOf(prefix.trim())) : undefined);
  return id === undefined ? tokenizer.prompt(prefix) : { ids: [id], lead: '' };
}
