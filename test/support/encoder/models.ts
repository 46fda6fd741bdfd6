/** Directories of models that tests load. */
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '../../..');

export const defaultModel = path.join(root, 'models/bge-small-maxsim/2');
/** Its first version, with the same graph. Its rows are not pooled, and their codes are plain. */
export const plainModel = path.join(root, 'models/bge-small-maxsim/1');
/** The default model version before that one. It has rows of 8 bits. */
export const minilmModel = path.join(root, 'models/minilm-l6-maxsim/1');
export const tinyModel = path.join(root, 'test/fixtures/colbert-tiny/1');
/** Not in the repository: it exists where a checkout has built it. */
export const manyLanguagesModel = path.join(root, 'models/e5-small-multilingual-maxsim/1');
