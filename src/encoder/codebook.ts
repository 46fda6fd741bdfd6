/**
 * The centroid codebook of a model directory, as the manifest describes it under `candidates.centroids`:
 * `file` int8 [count x dim], `scale_file` f32 little-endian [count] (absent: every scale is 1 / 127). Its
 * identity is the sha256 of the files, so codes made with another fit are never compared.
 */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { Codebook } from './contract.ts';
import { type ModelDirectory, ModelDirectoryError } from './model-directory.ts';

export async function readCodebook(model: ModelDirectory): Promise<Codebook | undefined> {
  const centroids = model.manifest?.candidates?.centroids;
  if (centroids === undefined) return undefined;
  const { count, dim, file, scale_file: scaleFile } = centroids;
  if (dim !== model.config.embedding_dim) {
    throw new ModelDirectoryError(`${model.directory}: centroids of dim ${dim}, not embedding_dim`);
  }
  const values = await readFile(path.join(model.directory, file));
  if (values.length !== count * dim) {
    throw new ModelDirectoryError(`${file} has ${values.length} bytes, not ${count} x ${dim}`);
  }
  const hash = createHash('sha256').update(values);
  const scales = new Float32Array(count).fill(1 / 127);
  if (scaleFile !== undefined) {
    const bytes = await readFile(path.join(model.directory, scaleFile));
    if (bytes.length !== count * 4) {
      throw new ModelDirectoryError(`${scaleFile} has ${bytes.length} bytes, not ${count} x 4`);
    }
    hash.update(bytes);
    for (let i = 0; i < count; i++) scales[i] = bytes.readFloatLE(i * 4);
  }
  return {
    id: hash.digest('hex'),
    count,
    vectors: new Int8Array(values.buffer, values.byteOffset, values.length),
    scales,
  };
}
