/**
 * Reads the argument of `maxsimd models add`: the directory of an export (`model.onnx`, `tokenizer.json`, and the keys of
 * `onnx_config.json`), as `pylate-onnx-export` and next-plaid write it, or one graph in it.
 *
 * pylate-onnx-export 0.1.0 writes the keys to `config_sentence_transformers.json`, and later versions to
 * `onnx_config.json`. PyLate writes a file of the first name beside a checkpoint, too. It has fewer keys and is no export.
 */
import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { issuesInWords } from '../../input/issue-words.ts';
import { fileOfModel, sharesSchema } from '../../encoder/model/shared-files.ts';
import { CommandFailure, inputError, messageOf } from '../failure.ts';
import { graphFiles, isInside } from './graph-files.ts';

export interface ModelSource {
  /** Files to copy: path from the source directory, and name in the model directory. */
  readonly files: readonly { readonly from: string; readonly to: string }[];
  readonly directory: string;
  /** Content of `onnx_config.json`. */
  readonly config: Readonly<Record<string, unknown>>;
  /** The manifest, if the source has one. */
  readonly manifest: SourceManifest | undefined;
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

const configFiles = ['onnx_config.json', 'config_sentence_transformers.json'] as const;
const tokenizerFiles = new Set(['tokenizer.json', 'tokenizer_config.json']);
/** Files of a model directory, besides weights. */
const ownFiles = new Set([...tokenizerFiles, ...configFiles, 'manifest.json', 'model.onnx']);

export async function readModelSource(given: string): Promise<ModelSource> {
  const directory = (await isDirectory(given)) ? given : path.dirname(given);
  const entries = await readdir(directory);
  if (directory === given && entries.includes('manifest.json')) return ownModel(directory);

  const graph = directory === given ? graphOf(directory, entries) : path.basename(given);
  if (!graph.endsWith('.onnx')) throw inputError(`${given} is neither a directory nor an .onnx file`);
  const { config, notes } = await configOf(directory, entries);
  if (!entries.includes('tokenizer.json')) throw inputError(`${directory} has no tokenizer.json`);
  const weights = await graphFiles(path.join(directory, graph));
  const taken = weights.find((name) => ownFiles.has(name));
  if (taken !== undefined) throw inputError(`${graph} keeps weights in ${taken}, which is another file here`);
  return {
    directory,
    files: [
      { from: graph, to: 'model.onnx' },
      ...[...weights, ...entries.filter((name) => tokenizerFiles.has(name))].map((name) => ({
        from: name,
        to: name,
      })),
    ],
    config,
    manifest: undefined,
    notes,
  };
}

/** A model directory as this program makes it. Files that it shares with another version are copied, too. */
async function ownModel(directory: string): Promise<ModelSource> {
  const manifest = parse(manifestSchema, directory, await readJson(path.join(directory, 'manifest.json')));
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
    config: await readJson(path.join(directory, 'onnx_config.json')),
    manifest,
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

async function configOf(
  directory: string,
  entries: readonly string[],
): Promise<Pick<ModelSource, 'config' | 'notes'>> {
  for (const name of configFiles.filter((file) => entries.includes(file))) {
    const config = await readJson(path.join(directory, name));
    if (!('embedding_dim' in config)) continue;
    const notes =
      name === configFiles[1] && config['do_query_expansion'] === false
        ? [
            'queries are not expanded, because pylate-onnx-export 0.1.0 turns this off for every model (models/convert.sh keeps the setting of the checkpoint)',
          ]
        : [];
    return { config, notes };
  }
  throw inputError(`${directory} has no onnx_config.json with an embedding_dim`);
}

async function isDirectory(given: string): Promise<boolean> {
  try {
    return (await stat(given)).isDirectory();
  } catch (error) {
    throw inputError(`cannot read ${given}: ${messageOf(error)}`, error);
  }
}

async function readJson(file: string): Promise<Record<string, unknown>> {
  try {
    return parse(z.record(z.string(), z.unknown()), file, JSON.parse(await readFile(file, 'utf8')));
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    throw inputError(`cannot read ${file}: ${messageOf(error)}`, error);
  }
}

function parse<T extends z.ZodType>(schema: T, where: string, value: unknown): z.output<T> {
  const result = schema.safeParse(value);
  if (!result.success) throw inputError(`${where}: ${issuesInWords(result.error)}`);
  return result.data;
}
