/** Directories of models that tests load. */
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '../../..');

export const defaultModel = path.join(root, 'models/bge-small-maxsim/1');
/** The one before it, which has rows of 8 bits. */
export const minilmModel = path.join(root, 'models/minilm-l6-maxsim/1');
export const tinyModel = path.join(root, 'test/fixtures/colbert-tiny/1');
