/**
 * The centroid codebook of a model directory, as the manifest describes it under `candidates.centroids`:
 * `file` int8 [count x dim] row-major, `scales` a file of f32 little-endian [count]; vector = int8 * scale. Its
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
  const { count, dim, file, scales: scaleFile } = centroids;
  if (dim !== model.config.embedding_dim) {
    throw new ModelDirectoryError(`${model.directory}: centroids of dim ${dim}, not embedding_dim`);
  }
  const values = await readFile(path.join(model.directory, file));
  if (values.length !== count * dim) {
    throw new ModelDirectoryError(`${file} has ${values.length} bytes, not ${count} x ${dim}`);
  }
  const bytes = await readFile(path.join(model.directory, scaleFile));
  if (bytes.length !== count * 4) {
    throw new ModelDirectoryError(`${scaleFile} has ${bytes.length} bytes, not ${count} x 4`);
  }
  const scales = Float32Array.from({ length: count }, (_, i) => bytes.readFloatLE(i * 4));
  return {
    id: createHash('sha256').update(values).update(bytes).digest('hex'),
    count,
    vectors: new Int8Array(values.buffer, values.byteOffset, values.length),
    scales,
  };
}
