/** Qdrant: answers of scroll, and records of its client as lines. */
import { isObject } from '../../json.ts';
import { firstOf, hasValue, objectIn, takeStored, vectorsIn, type Export } from './export.ts';
import { inside } from './member.ts';

export const qdrant: Export = {
  title: 'Qdrant',
  wholes: [
    {
      words: 'answers of scroll, one or one a line',
      read: inside('result', 'points'),
      fits: ({ result }) => isObject(result) && Array.isArray(result['points']),
    },
    {
      words: 'answers of retrieve',
      read: inside('result'),
      fits: ({ result }) => Array.isArray(result),
    },
  ],
  rows: [
    {
      words: 'records with id and payload',
      fits: (row) => hasValue(row, 'id') && Object.hasOwn(row, 'payload'),
      take: (row) => ({
        id: firstOf(row, ['id']),
        ...takeStored({
          fields: objectIn(row, 'payload'),
          inside: 'payload',
          textNames: ['page_content', 'document', 'text'],
        }),
        vectors: vectorsIn(row, ['vector']),
      }),
    },
  ],
  prefixes: ['payload', 'metadata', 'payload.metadata'],
};
