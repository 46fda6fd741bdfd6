/** Elasticdump: its lines, which are hits of Elasticsearch and OpenSearch, and answers of `_search` themselves. */
import { isObject } from '../../json.ts';
import { firstOf, hasValue, objectIn, takeStored, type Export } from './export.ts';
import { inside } from './member.ts';

export const elasticdump: Export = {
  title: 'Elasticdump',
  wholes: [
    {
      words: 'answers of _search, one or one a line',
      read: inside('hits', 'hits'),
      fits: ({ hits }) => isObject(hits) && Array.isArray(hits['hits']),
    },
  ],
  rows: [
    {
      words: 'lines with _id and _source (none have them with --sourceOnly)',
      fits: (row) => hasValue(row, '_id') && isObject(row['_source']),
      take: (row) => ({
        id: firstOf(row, ['_id']),
        ...takeStored({ fields: objectIn(row, '_source'), inside: '_source', textNames: ['text'] }),
      }),
    },
  ],
  prefixes: ['_source', 'metadata', '_source.metadata'],
};
