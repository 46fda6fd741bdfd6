/**
 * Reads the argument of `maxsimd models add`: the directory of a ColBERT export (`model.onnx`, `tokenizer.json`, and the keys of
 * `onnx_config.json`), as `pylate-onnx-export` and next-plaid write it, or of an embedding model (`embedding-export.ts`), or one
 * graph in it.
 *
 * pylate-onnx-export 0.1.0 writes the keys to `config_sentence_transformers.json`, and later versions to
 * `onnx_config.json`. Checkpoints of PyLate and sentence-transformers have a file of the first name, too, with other keys.
 */
import { existsSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { fileOfModel, sharesSchema } from '../../encoder/model/shared-files.ts';
import { inputError, messageOf } from '../failure.ts';
import { type EmbeddingExport, readEmbeddingExport } from './embedding-export.ts';
import { graphFiles, isInside, quantisesByBatch } from './graph-files.ts';
import { readJsonFile } from './json-file.ts';
import { type NoSingleVector, readSingleVector, type SingleVector } from './quality/single-vector.ts';

export interface ModelSource {
  /** Files to copy: path from the source directory, and name in the model directory. */
  readonly files: readonly { readonly from: string; readonly to: string }[];
  readonly directory: string;
  /** Content of `onnx_config.json`. */
  readonly config: Readonly<Record<string, unknown>>;
  /** The manifest, if the source has one. */
  readonly manifest: SourceManifest | undefined;
  /** An ordinary embedding model, whose mean vector is still to be fitted. */
  readonly embedding?: Pick<EmbeddingExport, 'weights'>;
  readonly singleVector: SingleVector | NoSingleVector;
  /** Says what to take if vectors depend on the batch: the f32 graph of the same directory, if there is one. */
  readonly f32Advice: string;
  /** Remarks for the user. */
  readonly notes: readonly string[];
}

const manifestSchema = z.looseObject({
  name: z.string().optional(),
  version: z.union([z.string(), z.number().transform(String)]).optional(),
  files: z.record(z.string(), z.unknown()),
  shares: sharesSchema.optional(),
});

export type SourceManifest = z.output<typeof manifestSchema>;

const ofColbert: NoSingleVector = { reason: 'a ColBERT export has none' };
const ofManifest: NoSingleVector = { reason: 'a manifest does not say how the model makes one' };
const configSchema = z.record(z.string(), z.unknown());
const configFiles = ['onnx_config.json', 'config_sentence_transformers.json'] as const;
/** Where hubs keep graphs, of which `model.onnx` has f32 weights. */
const graphsFolder = 'onnx';
const tokenizerFiles = new Set(['tokenizer.json', 'tokenizer_config.json']);
/** Files of a model directory, besides weights. */
const ownFiles = new Set([...tokenizerFiles, ...configFiles, 'manifest.json', 'model.onnx']);

export async function readModelSource(given: string): Promise<ModelSource> {
  const directory = await directoryOf(given);
  const entries = await readdir(directory);
  if (directory === given && entries.includes('manifest.json')) return ownModel(directory);

  const graph = directory === given ? await graphIn(directory, entries) : path.relative(directory, given);
  if (!graph.endsWith('.onnx')) throw inputError(`${given} is neither a directory nor an .onnx file`);
  if (!entries.includes('tokenizer.json')) throw inputError(`${directory} has no tokenizer.json`);
  const described = await configOf(directory, entries);
  const f32Advice = await f32AdviceFor(directory, graph);
  if (await quantisesByBatch(path.join(directory, graph))) {
    throw inputError(
      `${graph} quantises by the values of a batch (dynamic quantisation), so the vectors of a text would depend on the texts beside it: ${f32Advice}`,
    );
  }
  const weights = await graphFiles(path.join(directory, graph));
  const taken = weights.find((name) => ownFiles.has(name));
  if (taken !== undefined) throw inputError(`${graph} keeps weights in ${taken}, which is another file here`);
  const source = {
    directory,
    files: [
      { from: graph, to: 'model.onnx' },
      ...weights.map((name) => ({ from: path.join(path.dirname(graph), name), to: name })),
      ...entries.filter((name) => tokenizerFiles.has(name)).map((name) => ({ from: name, to: name })),
    ],
    manifest: undefined,
    notes: [],
    f32Advice,
  };
  if (described !== undefined) return { ...source, ...described, singleVector: ofColbert };
  const embedding = await readEmbeddingExport(directory, entries, graph);
  // The model can be added whatever these files say.
  const singleVector = await readSingleVector(directory).catch((error: unknown) => ({
    reason: messageOf(error),
  }));
  return {
    ...source,
    config: embedding.config,
    embedding,
    singleVector,
    notes: [weightsNote(embedding)],
  };
}

/** Names the f32 graph beside another one, in the order in which hubs have it. */
async function f32AdviceFor(directory: string, graph: string): Promise<string> {
  const names = new Set([
    path.join(path.dirname(graph), 'model.onnx'),
    path.join(graphsFolder, 'model.onnx'),
    'model.onnx',
  ]);
  names.delete(path.normalize(graph));
  for (const name of names) {
    const file = path.join(directory, name);
    if (!existsSync(file)) continue;
    // Nobody asked for this file. One that cannot be read is no advice.
    const isBad = await quantisesByBatch(file).catch(() => true);
    if (!isBad) return `add ${file}`;
  }
  return 'add the f32 graph, which model hubs have as onnx/model.onnx';
}

function weightsNote({ weights }: EmbeddingExport): string {
  return weights === undefined
    ? 'an embedding model: all tokens of a query have the same weight, because its vocabulary tells nothing of frequency'
    : `an embedding model: tokens of a query are weighted by ${weights.source}`;
}

/** The directory of an export. A graph may lie in its folder `onnx`. */
async function directoryOf(given: string): Promise<string> {
  if (await isDirectory(given)) return given;
  const parent = path.dirname(given);
  const isOwn = path.basename(parent) !== graphsFolder || (await readdir(parent)).includes('tokenizer.json');
  return isOwn ? parent : path.dirname(parent);
}

async function graphIn(directory: string, entries: readonly string[]): Promise<string> {
  if (!entries.includes(graphsFolder) || entries.some((name) => name.endsWith('.onnx')))
    return graphOf(directory, entries);
  const folder = path.join(directory, graphsFolder);
  return path.join(graphsFolder, graphOf(folder, await readdir(folder)));
}

/** A model directory as this program makes it. Files that it shares with another version are copied, too. */
async function ownModel(directory: string): Promise<ModelSource> {
  const manifest = await readJsonFile(manifestSchema, path.join(directory, 'manifest.json'));
  const names = Object.keys(manifest.files);
  const strange = names.find((name) => !isInside(name));
  if (strange !== undefined) {
    throw inputError(
      `${directory}: the manifest names a file outside the directory: ${JSON.stringify(strange)}`,
    );
  }
  const files = await Promise.all(
    names.map(async (name) => ({
      from: path.relative(directory, await fileOfModel(directory, manifest.shares, name)),
      to: name,
    })),
  );
  for (const { from, to: graph } of files.filter(({ to }) => to.endsWith('.onnx'))) {
    const weights = await graphFiles(path.join(directory, from));
    const unlisted = weights.find(
      (name) => !names.includes(path.posix.join(path.posix.dirname(graph), name)),
    );
    if (unlisted !== undefined) {
      throw inputError(
        `${directory}: ${graph} keeps weights in ${unlisted}, which the manifest does not name`,
      );
    }
  }
  return {
    directory,
    files,
    config: await readJsonFile(configSchema, path.join(directory, 'onnx_config.json')),
    manifest,
    singleVector: ofManifest,
    f32Advice: 'add the f32 graph',
    notes: [],
  };
}

function graphOf(directory: string, entries: readonly string[]): string {
  if (entries.includes('model.onnx')) return 'model.onnx';
  const graphs = entries.filter((name) => name.endsWith('.onnx'));
  if (graphs.length === 1) return graphs[0]!;
  if (graphs.length === 0) {
    const hint = entries.some((name) => name.endsWith('.safetensors'))
      ? ': this is a checkpoint, which models/convert.sh exports'
      : '';
    throw inputError(`${directory} has no .onnx file${hint}`);
  }
  throw inputError(`${directory} has ${graphs.length} graphs; name one of them: ${graphs.join(', ')}`);
}

/** The keys of a ColBERT export; `undefined` if there are none. */
async function configOf(
  directory: string,
  entries: readonly string[],
): Promise<Pick<ModelSource, 'config' | 'notes'> | undefined> {
  for (const name of configFiles.filter((file) => entries.includes(file))) {
    const config = await readJsonFile(configSchema, path.join(directory, name));
    if (!('embedding_dim' in config)) continue;
    const notes =
      name === configFiles[1] && config['do_query_expansion'] === false
        ? [
            'queries are not expanded, because pylate-onnx-export 0.1.0 turns this off for every model (models/convert.sh keeps the setting of the checkpoint)',
          ]
        : [];
    return { config, notes };
  }
  return undefined;
}

async function isDirectory(given: string): Promise<boolean> {
  try {
    return (await stat(given)).isDirectory();
  } catch (error) {
    throw inputError(`cannot read ${given}: ${messageOf(error)}`, error);
  }
}
