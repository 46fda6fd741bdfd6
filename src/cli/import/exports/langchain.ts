/** LangChain: `dumps`, `model_dump_json`, and `InMemoryVectorStore.dump`. */
import { isObject } from '../../json.ts';
import {
  firstOf,
  metadataDepthMax,
  objectIn,
  vectorsIn,
  type Export,
  type ExportRow,
  type JsonObject,
} from './export.ts';
import { inside } from './member.ts';

const notWritten = 'hold values that LangChain could not write, such as dates: they are left out';

export const langchain: Export = {
  title: 'LangChain',
  wholes: [
    {
      words: 'a store of InMemoryVectorStore.dump',
      read: inside(),
      fits: (store) => Object.values(store).some((entry) => isObject(entry) && isStored(entry)),
    },
  ],
  rows: [
    {
      words: 'documents of dumps',
      fits: (row) => row['lc'] === 1 && isObject(row['kwargs']),
      take: (row) => documentOf(objectIn(row, 'kwargs'), 'page_content', 'kwargs.'),
    },
    {
      words: 'lines of model_dump_json',
      fits: (row) => Object.hasOwn(row, 'page_content'),
      take: (row) => documentOf(row, 'page_content'),
    },
    {
      words: 'entries of a store',
      fits: isStored,
      take: (row) => ({ ...documentOf(row, 'text'), vectors: vectorsIn(row, ['vector']) }),
    },
  ],
  prefixes: ['kwargs', 'metadata', 'kwargs.metadata'],
};

/** `id` and `vector` come first, so they are there in a beginning that is cut off. */
function isStored(entry: JsonObject): boolean {
  const isOwn = Object.keys(entry).every((name) => ['id', 'vector', 'text', 'metadata'].includes(name));
  return isOwn && Object.hasOwn(entry, 'id') && Array.isArray(entry['vector']);
}

function documentOf(document: JsonObject, textName: string, prefix = ''): ExportRow {
  const metadata = Object.entries(objectIn(document, 'metadata'));
  const written = metadata.filter(([, value]) => !isNotWritten(value));
  return {
    id: firstOf(document, ['id'], prefix),
    text: firstOf(document, [textName], prefix),
    fields: Object.fromEntries(written),
    remark: written.length < metadata.length ? notWritten : undefined,
  };
}

/** Stands for a value of a type that has no JSON, anywhere in a value of metadata. */
function isNotWritten(value: unknown, depth = metadataDepthMax): boolean {
  if (depth === 0 || typeof value !== 'object' || value === null) return false;
  if (isObject(value) && value['lc'] === 1 && value['type'] === 'not_implemented') return true;
  return Object.values(value).some((inner) => isNotWritten(inner, depth - 1));
}
