/** Arrays of numbers beside a model's graph, little-endian. Each has a checksum in the manifest, if there is one. */
import { readFile } from 'node:fs/promises';
import type { Manifest, OnnxConfig } from './model-directory.ts';
import { ModelDirectoryError, unreadable } from './model-directory-error.ts';

export interface ArrayFiles {
  readonly directory: string;
  readonly config: OnnxConfig;
  readonly manifest: Manifest | undefined;
  readonly fileOf: (name: string) => Promise<string>;
}

/** f16 [dim x dim] as bits: the matrix that `maxsimd.moment` names; absent when codes are not refined. */
export async function readMoment(files: ArrayFiles): Promise<Uint16Array | undefined> {
  const { directory, config } = files;
  const name = config.maxsimd?.moment;
  if (name === undefined) return undefined;
  if (config.maxsimd?.row_bits === 8) {
    throw new ModelDirectoryError(`${directory}: a moment needs row_bits below 8`);
  }
  const { file, bytes } = await bytesOf(files, `the moment ${name}`, name);
  const expected = config.embedding_dim ** 2 * Uint16Array.BYTES_PER_ELEMENT;
  if (bytes.byteLength !== expected) {
    throw new ModelDirectoryError(`${file} has ${bytes.byteLength} bytes, not ${expected}`);
  }
  const values = new Uint16Array(bytes);
  const infinity = 0x7c00;
  if (values.some((bits) => (bits & infinity) === infinity))
    throw new ModelDirectoryError(`${file} has values that are no finite numbers`);
  return values;
}

/** f32 [vocabulary]: the weight of each token in a query, as `maxsimd.token_weights` names it; absent when the graph gives them. */
export async function readTokenWeights(files: ArrayFiles): Promise<Float32Array | undefined> {
  const name = files.config.maxsimd?.token_weights;
  if (name === undefined) return undefined;
  const { file, bytes } = await bytesOf(files, `the token weights ${name}`, name);
  if (bytes.byteLength === 0 || bytes.byteLength % Float32Array.BYTES_PER_ELEMENT !== 0)
    throw new ModelDirectoryError(`${file} has ${bytes.byteLength} bytes, which are no numbers of 4 bytes`);
  const values = new Float32Array(bytes);
  if (!values.every((value) => Number.isFinite(value) && value >= 0))
    throw new ModelDirectoryError(`${file} has weights that are negative or no finite numbers`);
  return values;
}

async function bytesOf(
  { directory, manifest, fileOf }: ArrayFiles,
  what: string,
  name: string,
): Promise<{ readonly file: string; readonly bytes: ArrayBuffer }> {
  if (manifest !== undefined && !Object.hasOwn(manifest.files, name)) {
    throw new ModelDirectoryError(`${directory}: ${what} has no checksum in the manifest`);
  }
  const file = await fileOf(name);
  try {
    return { file, bytes: Uint8Array.from(await readFile(file)).buffer };
  } catch (error) {
    throw unreadable(file, error);
  }
}
