/** Weaviate: objects of its clients and of its REST API as JSON. */
import { isObject } from '../../json.ts';
import { firstOf, hasValue, objectIn, takeStored, vectorsIn, type Export } from './export.ts';
import { inside } from './member.ts';

export const weaviate: Export = {
  title: 'Weaviate',
  wholes: [
    {
      words: 'answers of /v1/objects',
      read: inside('objects'),
      fits: ({ objects }) => Array.isArray(objects),
    },
  ],
  rows: [
    {
      words: 'objects with uuid (or id) and properties',
      fits: (row) => isObject(row['properties']) && ['uuid', 'id'].some((name) => hasValue(row, name)),
      take: (row) => ({
        id: firstOf(row, ['uuid', 'id']),
        ...takeStored({ fields: objectIn(row, 'properties'), inside: 'properties', textNames: ['text'] }),
        vectors: vectorsIn(row, ['vector', 'vectors']),
      }),
    },
  ],
  prefixes: ['properties', 'metadata', 'properties.metadata'],
};
