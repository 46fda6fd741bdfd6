/**
 * Milvus: results of `query`, and files of BulkWriter. CSV and Parquet have objects and arrays as JSON texts. The fields of
 * `$meta` are those that the schema does not name, which Milvus itself shows beside the others.
 */
import { isObject, isRawJson, parseGivenJson } from '../../json.ts';
import {
  firstOf,
  vectorsIn,
  withOpened,
  without,
  type Export,
  type ExportRow,
  type JsonObject,
} from './export.ts';
import { inside } from './member.ts';

const idColumns = ['pk', 'id', 'doc_id', '_id'];

export const milvus: Export = {
  title: 'Milvus',
  wholes: [
    {
      words: 'JSON of BulkWriter',
      read: inside('rows'),
      fits: ({ rows }) => Array.isArray(rows),
    },
    {
      words: 'answers of query',
      read: inside('data'),
      fits: ({ code, data }) => code === 0 && Array.isArray(data),
    },
  ],
  rows: [
    {
      words: 'rows with $meta',
      fits: (row) => Object.hasOwn(row, '$meta'),
      take,
    },
    {
      words: 'results of query as an array or lines, CSV and Parquet of BulkWriter',
      isCommon: true,
      fits: () => true,
      take,
    },
  ],
  prefixes: ['metadata', '$meta'],
  idColumns,
};

function take(row: JsonObject, hasColumns: boolean): ExportRow {
  const id = firstOf(row, idColumns);
  const text = firstOf(row, ['text']);
  const others = without(row, [id?.name, text?.name]);
  const fields = Object.entries(others).map(([name, value]) => [
    name,
    hasColumns || name === '$meta' ? parsed(value) : value,
  ]);
  const whole = withOpened(Object.fromEntries(fields), '$meta');
  const vectors = Object.keys(whole).filter((name) => isVector(name, whole[name]));
  return {
    id,
    text,
    fields: withOpened(without(whole, vectors), 'metadata'),
    vectors: vectorsIn(whole, vectors),
  };
}

/** Any field may be one. The number of its dimensions, where it has many, tells the others. */
function isVector(name: string, value: unknown): boolean {
  if (!/vector|embedding/i.test(name)) return false;
  if (!isObject(value)) return areNumbers(value);
  // A sparse one has its places as names, or beside its values.
  const isSparse = Object.keys(value).every((key) => /^(?:\d+|indices|values)$/.test(key));
  return isSparse && areNumbers(Object.values(value).flat());
}

function areNumbers(values: unknown): boolean {
  return (
    Array.isArray(values) &&
    values.length > 0 &&
    values.every((value) => typeof value === 'number' || isRawJson(value))
  );
}

/** The object or array whose JSON text it is. */
function parsed(value: unknown): unknown {
  if (typeof value !== 'string' || !/^\s*[[{]/.test(value)) return value;
  try {
    const inner = parseGivenJson(value);
    return isObject(inner) || Array.isArray(inner) ? inner : value;
  } catch {
    return value;
  }
}
