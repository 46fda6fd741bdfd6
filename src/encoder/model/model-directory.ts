/**
 * A model directory `models/<name>/<version>/`, read and checked.
 *
 *   model.onnx         inputs input_ids, attention_mask [, token_type_ids]  int64 [batch, tokens]
 *                      outputs `output` f32 [batch, tokens, dim], and those that `maxsimd` names
 *   tokenizer.json     Hugging Face tokenizer
 *   onnx_config.json   keys of the PyLate / next-plaid ONNX exports; our own under `maxsimd`
 *   (any other name)   optional: the matrix that `maxsimd.moment` names, f16 [dim, dim]
 *   manifest.json      optional: sha256 of the files (checked here), golden vectors, and under
 *                      `variants` the graph for each provider; without it model.onnx serves all.
 *                      Files that it lists may lie beside another version (`shared-files.ts`)
 *
 * Name and version come from the manifest, or from the last two parts of the path.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { z } from 'zod';
import { issuesInWords } from '../../input/issue-words.ts';
import { hasCode } from '../../system-errors.ts';
import { fileOfModel, sharesSchema } from './shared-files.ts';

const tokenId = z.number().int().nonnegative();

/** Keys of the ColBERT ONNX exports. Unknown keys are ignored. */
const onnxConfigSchema = z.looseObject({
  query_prefix: z.string().nullish(),
  document_prefix: z.string().nullish(),
  query_prefix_id: tokenId.nullish(),
  document_prefix_id: tokenId.nullish(),
  query_length: z.number().int().min(1).default(32),
  document_length: z.number().int().min(1).default(180),
  do_query_expansion: z.boolean().default(true),
  attend_to_expansion_tokens: z.boolean().default(false),
  embedding_dim: z.number().int().min(1).max(1024),
  uses_token_type_ids: z.boolean().default(false),
  mask_token_id: tokenId.nullish(),
  pad_token_id: tokenId.default(0),
  skiplist_words: z.array(z.string()).default([]),
  do_lower_case: z.boolean().default(false),
  /** Keys of this project. */
  maxsimd: z
    .looseObject({
      /**
       * The prefixes are prompts, as in sentence-transformers: they are put before each text, and the text keeps its outer white
       * space. Otherwise they are tokens, as in PyLate, and the text is stripped.
       */
      prompts: z.boolean().optional(),
      /** The most positions of a query, if it is more than `query_length`, to which queries are expanded. */
      query_length_max: z.number().int().min(1).optional(),
      /** The positions that the graph has. */
      position_limit: z.number().int().min(4).optional(),
      /** f32 [dim]: the mean of the unit document vectors, which is subtracted before they are quantised. */
      centring: z.array(z.number()).optional(),
      /** Bits of a stored component. With fewer than 8 the encoder centres, rotates and quantises vectors, not the graph. */
      row_bits: z.union([z.literal(1), z.literal(2), z.literal(4), z.literal(8)]).default(8),
      /** One row is stored for so many token vectors of a chunk. */
      pool_factor: z.number().int().min(1).max(8).default(1),
      /** The file with which codes of fewer than 8 bits are refined: f16 [dim, dim], the moment of rotated unit vectors. */
      moment: z
        .string()
        .regex(/^[\w.-]+$/)
        .optional(),
      int8_output: z.string().optional(),
      scale_output: z.string().optional(),
      token_weight_output: z.string().optional(),
    })
    .optional(),
});

export type OnnxConfig = z.output<typeof onnxConfigSchema>;

const fileEntry = z.union([
  z.string(),
  z.looseObject({ sha256: z.string(), bytes: z.number().int().optional() }),
]);

const manifestSchema = z.looseObject({
  name: z.string().min(1).optional(),
  version: z.union([z.string().min(1), z.number().int().transform(String)]).optional(),
  /** File -> its sha256 in hexadecimal, or an object with that. */
  files: z.record(z.string(), fileEntry).default({}),
  shares: sharesSchema.optional(),
  golden: z.unknown().optional(),
  /** Graphs of the same model. Of several for a provider the first counts. */
  variants: z
    .array(
      z.looseObject({
        file: z.string(),
        provider: z.string(),
        /** For a graph that is less exact than the one that gave the golden values. */
        golden_tolerance: z.number().positive().optional(),
      }),
    )
    .default([]),
});

export type Manifest = z.output<typeof manifestSchema>;

export interface ModelGraph {
  /** Absolute path. */
  readonly file: string;
  /** A larger tolerance than that of the golden values; absent = theirs. */
  readonly goldenTolerance: number | undefined;
  /** In hexadecimal. */
  readonly sha256: string;
}

/** The graph that each provider runs. */
export type ModelGraphs = Readonly<Record<'cpu' | 'cuda', ModelGraph>>;

export interface ModelDirectory {
  readonly directory: string;
  readonly name: string;
  readonly version: string;
  readonly graphs: ModelGraphs;
  readonly config: OnnxConfig;
  /** f16 [dim x dim]; absent when codes are not refined. */
  readonly moment: Uint16Array | undefined;
  readonly manifest: Manifest | undefined;
  /** Parsed tokenizer.json, and parsed tokenizer_config.json (empty if there is none). */
  readonly tokenizer: Readonly<Record<string, unknown>>;
  readonly tokenizerConfig: Readonly<Record<string, unknown>>;
}

export class ModelDirectoryError extends Error {
  override readonly name = 'ModelDirectoryError';
}

/** Reads a directory and checks every file that its manifest names. Errors are `ModelDirectoryError`s. */
export async function openModelDirectory(directory: string): Promise<ModelDirectory> {
  const resolved = path.resolve(directory);
  const manifestFile = path.join(resolved, 'manifest.json');
  const manifest = (await exists(manifestFile)) ? await readAs(manifestSchema, manifestFile) : undefined;
  const fileOf: FileOf = (name) => fileOfModel(resolved, manifest?.shares, name);
  const config = await readAs(onnxConfigSchema, await fileOf('onnx_config.json'));
  if (manifest !== undefined) await verifyFiles(manifest, fileOf);
  const graphs = {
    cpu: await graphFor('cpu', resolved, manifest, fileOf),
    cuda: await graphFor('cuda', resolved, manifest, fileOf),
  };
  const tokenizerConfig = await fileOf('tokenizer_config.json');
  checkConsistency(resolved, config);
  return {
    directory: resolved,
    name: manifest?.name ?? path.basename(path.dirname(resolved)),
    version: manifest?.version ?? path.basename(resolved),
    graphs,
    config,
    moment: await readMoment(resolved, config, manifest, fileOf),
    manifest,
    tokenizer: await readObject(await fileOf('tokenizer.json')),
    tokenizerConfig: (await exists(tokenizerConfig)) ? await readObject(tokenizerConfig) : {},
  };
}

/** The path of a file of the model. */
type FileOf = (name: string) => Promise<string>;

/** sha256 of a file, in hexadecimal. */
async function fileChecksum(file: string): Promise<string> {
  const hash = createHash('sha256');
  try {
    await pipeline(createReadStream(file, { highWaterMark: 1 << 20 }), hash);
  } catch (error) {
    throw unreadable(file, error);
  }
  return hash.digest('hex');
}

async function graphFor(
  provider: 'cpu' | 'cuda',
  directory: string,
  manifest: Manifest | undefined,
  fileOf: FileOf,
): Promise<ModelGraph> {
  const variant = manifest?.variants.find((each) => each.provider === provider);
  const name = variant?.file ?? 'model.onnx';
  const entry = manifest?.files[name];
  if (variant !== undefined && entry === undefined) {
    throw new ModelDirectoryError(`${directory}: the variant ${name} has no checksum in the manifest`);
  }
  const file = await fileOf(name);
  if (!(await exists(file))) throw new ModelDirectoryError(`${directory} has no ${name}`);
  return {
    file,
    goldenTolerance: variant?.golden_tolerance,
    sha256: entry === undefined ? await fileChecksum(file) : checksumOf(entry),
  };
}

function checksumOf(entry: z.output<typeof fileEntry>): string {
  return (typeof entry === 'string' ? entry : entry.sha256).toLowerCase();
}

async function verifyFiles(manifest: Manifest, fileOf: FileOf): Promise<void> {
  await Promise.all(
    Object.entries(manifest.files).map(async ([name, entry]) => {
      const expected = checksumOf(entry);
      const full = await fileOf(name);
      const actual = await fileChecksum(full);
      if (actual !== expected) {
        throw new ModelDirectoryError(`${full} has sha256 ${actual}, its manifest says ${expected}`);
      }
    }),
  );
}

function checkConsistency(directory: string, config: OnnxConfig): void {
  const ours = config.maxsimd;
  if (config.do_query_expansion && (config.mask_token_id ?? undefined) === undefined) {
    throw new ModelDirectoryError(`${directory}: do_query_expansion needs mask_token_id`);
  }
  if ((ours?.int8_output === undefined) !== (ours?.scale_output === undefined)) {
    throw new ModelDirectoryError(`${directory}: int8_output and scale_output go together`);
  }
  if (ours !== undefined && ours.row_bits < 8 && ours.int8_output !== undefined) {
    throw new ModelDirectoryError(`${directory}: row_bits below 8 excludes int8_output`);
  }
  if (ours?.centring !== undefined && ours.centring.length !== config.embedding_dim) {
    throw new ModelDirectoryError(
      `${directory}: centring has ${ours.centring.length} values, not embedding_dim`,
    );
  }
}

async function readMoment(
  directory: string,
  config: OnnxConfig,
  manifest: Manifest | undefined,
  fileOf: FileOf,
): Promise<Uint16Array | undefined> {
  const name = config.maxsimd?.moment;
  if (name === undefined) return undefined;
  if (config.maxsimd?.row_bits === 8) {
    throw new ModelDirectoryError(`${directory}: a moment needs row_bits below 8`);
  }
  if (manifest !== undefined && !Object.hasOwn(manifest.files, name)) {
    throw new ModelDirectoryError(`${directory}: the moment ${name} has no checksum in the manifest`);
  }
  const file = await fileOf(name);
  const bytes = await readFile(file).catch((error: unknown) => {
    throw unreadable(file, error);
  });
  const expected = config.embedding_dim ** 2 * Uint16Array.BYTES_PER_ELEMENT;
  if (bytes.length !== expected) {
    throw new ModelDirectoryError(`${file} has ${bytes.length} bytes, not ${expected}`);
  }
  const values = new Uint16Array(Uint8Array.from(bytes).buffer);
  const infinity = 0x7c00;
  if (values.some((bits) => (bits & infinity) === infinity))
    throw new ModelDirectoryError(`${file} has values that are no finite numbers`);
  return values;
}

async function exists(file: string): Promise<boolean> {
  try {
    await stat(file);
    return true;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false;
    throw error;
  }
}

async function readJson(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, 'utf8'));
  } catch (error) {
    throw unreadable(file, error);
  }
}

function unreadable(file: string, cause: unknown): ModelDirectoryError {
  return new ModelDirectoryError(`cannot read ${file}: ${(cause as Error).message}`, { cause });
}

async function readObject(file: string): Promise<Record<string, unknown>> {
  const value = await readJson(file);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ModelDirectoryError(`${file} is not a JSON object`);
  }
  return value as Record<string, unknown>;
}

async function readAs<T extends z.ZodType>(schema: T, file: string): Promise<z.output<T>> {
  const result = schema.safeParse(await readJson(file));
  if (!result.success) throw new ModelDirectoryError(`${file}: ${issuesInWords(result.error)}`);
  return result.data;
}
