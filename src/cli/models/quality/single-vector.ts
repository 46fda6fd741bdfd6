/**
 * The single vector that an embedding model has for a text: the mean of its token states or the state of its first token (CLS), with
 * length 1. Exports of sentence-transformers say which in `1_Pooling/config.json`.
 */
import path from 'node:path';
import { z } from 'zod';
import { normalise } from '../../../encoder/inference/unit-rows.ts';
import { fileIn } from '../../beir/directory.ts';
import { readJsonFile } from '../json-file.ts';

export interface SingleVector {
  readonly pooling: 'mean' | 'cls';
  /** For people: who says so. */
  readonly source: string;
}

/** Why there is none. */
export interface NoSingleVector {
  readonly reason: string;
}

const poolingFile = '1_Pooling/config.json';
const poolingSchema = z.looseObject({
  /** Releases before 6 of sentence-transformers have a switch for each kind instead. */
  pooling_mode: z.union([z.string(), z.array(z.string())]).optional(),
  include_prompt: z.boolean().default(true),
});
const modulesSchema = z.array(z.looseObject({ type: z.string() }));
/** Modules after which the vector of a text is still its pooled states, if its length is left aside. */
const knownModules = new Set(['Transformer', 'Pooling', 'Normalize']);
const switches: Readonly<Record<string, string>> = {
  pooling_mode_mean_tokens: 'mean',
  pooling_mode_cls_token: 'cls',
};

export async function readSingleVector(directory: string): Promise<SingleVector | NoSingleVector> {
  const modulesPath = fileIn(directory, ['modules.json']);
  const modules = modulesPath === undefined ? [] : await readJsonFile(modulesSchema, modulesPath);
  const further = modules
    .map(({ type }) => type.split('.').at(-1)!)
    .filter((name) => !knownModules.has(name));
  if (further.length > 0)
    return { reason: `modules.json has the module ${further.join(', ')}, which the graph may lack` };
  const file = fileIn(directory, [path.normalize(poolingFile)]);
  if (file === undefined)
    return { pooling: 'mean', source: `the default, because there is no ${poolingFile}` };
  const config = await readJsonFile(poolingSchema, file);
  const kinds = kindsOf(config);
  const [kind] = kinds;
  if (kinds.length !== 1 || (kind !== 'mean' && kind !== 'cls'))
    return { reason: `${poolingFile} asks for ${kinds.join(' and ') || 'nothing'}, not for mean or cls` };
  if (!config.include_prompt && kind === 'mean')
    return { reason: `${poolingFile} leaves prompts out of the mean` };
  return { pooling: kind, source: poolingFile };
}

function kindsOf(config: z.output<typeof poolingSchema>): readonly string[] {
  if (config.pooling_mode !== undefined) return [config.pooling_mode].flat();
  return Object.entries(config)
    .filter(([name, value]) => name.startsWith('pooling_mode_') && value === true)
    .map(([name]) => switches[name] ?? name);
}

/** `states`: f32 [tokens x dim], those of the special tokens included. Returns f32 [dim] of length 1. */
export function singleVectorOf(
  states: Float32Array,
  dim: number,
  pooling: SingleVector['pooling'],
): Float32Array {
  const vector = new Float32Array(dim);
  const end = pooling === 'cls' ? dim : states.length;
  for (let at = 0; at < end; at += 1) vector[at % dim]! += states[at]!;
  normalise(vector, dim);
  return vector;
}
