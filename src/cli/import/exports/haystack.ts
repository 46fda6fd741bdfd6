/** Haystack: `save_to_disk` of the store in memory, and `to_dict` of documents, flat or not. */
import { firstOf, objectIn, vectorsIn, without, type Export, type JsonObject } from './export.ts';
import { inside } from './member.ts';

/** Fields of a document that are no metadata. */
const own = ['id', 'content', 'meta', 'blob', 'score', 'dataframe', 'content_type', 'id_hash_keys'];
const vectors = ['embedding', 'sparse_embedding'];

export const haystack: Export = {
  title: 'Haystack',
  wholes: [
    {
      words: 'a store of save_to_disk',
      read: inside('documents'),
      fits: (store) => Object.hasOwn(store, 'init_parameters'),
    },
  ],
  rows: [
    {
      words: 'lines of to_dict, flat or not',
      fits: isDocument,
      take: (row) => ({
        id: firstOf(row, ['id']),
        text: firstOf(row, ['content']),
        fields: { ...without(row, [...own, ...vectors]), ...objectIn(row, 'meta') },
        vectors: vectorsIn(row, vectors),
      }),
    },
  ],
  prefixes: ['meta'],
};

function isDocument(row: JsonObject): boolean {
  return Object.hasOwn(row, 'content') && Object.hasOwn(row, 'id');
}
