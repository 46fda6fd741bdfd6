/** Encodes the caller's values for a request. Throws a `MaxsimdError` if no request can carry a value. */
import { MaxsimdError } from './errors.ts';

/** A path of these segments, and a query. */
export function requestTarget(
  segments: readonly string[],
  query: Readonly<Record<string, string>> | undefined,
): string {
  const path = segments.map((segment) => `/${pathSegment(segment)}`).join('');
  return query === undefined ? path : `${path}?${new URLSearchParams(query).toString()}`;
}

/**
 * fetch removes the segments `.` and `..` (RFC 3986 5.2.4), and proxies merge empty ones. The path would then name another
 * thing, such as the index of a document. `%2e%2e` becomes `%252e%252e`, which is safe.
 */
function pathSegment(text: string): string {
  let encoded: string;
  try {
    encoded = encodeURIComponent(text);
  } catch (error) {
    throw new MaxsimdError('an id holds half a surrogate pair, which no address can carry', { cause: error });
  }
  if (encoded === '' || encoded === '.' || encoded === '..')
    throw new MaxsimdError(`no id is ${JSON.stringify(encoded)}: nothing was sent`);
  return encoded;
}

/** No request needs more levels. Metadata may have 16. */
const levelsMax = 200;
const pathCharactersMax = 200;

/**
 * Refuses values that `JSON.stringify` would leave out or change without a word: NaN (`null`), a Map (`{}`), a function. The
 * error names the path of the field, and the id of its document. A value with a method `toJSON`, such as a Date, is what that
 * method gives. An `undefined` field of an object is absent.
 */
export function jsonText(value: object): string {
  /** From the value to the field, with the keys that lead to them. */
  const holders: unknown[] = [];
  const keys: string[] = [];
  const place = (key: string): string => placeOf(value, [...keys, key].slice(1));
  let last = '';
  try {
    return JSON.stringify(value, function (this: Record<string, unknown>, key: string, field: unknown) {
      last = key;
      while (holders.length > 0 && holders.at(-1) !== this) {
        holders.pop();
        keys.pop();
      }
      const problem =
        problemOf(this[key], field, Array.isArray(this)) ??
        (holders.includes(field) ? 'an object that holds itself is no JSON' : undefined) ??
        (holders.length > levelsMax ? `more than ${levelsMax} levels of objects and arrays` : undefined);
      if (problem !== undefined) throw new MaxsimdError(`${place(key)}${problem}`);
      if (typeof field === 'object' && field !== null) {
        holders.push(field);
        keys.push(key);
      }
      return field;
    });
  } catch (error) {
    if (error instanceof MaxsimdError) throw error;
    throw new MaxsimdError(`${place(last)}the request is no JSON: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/** The path of a field, and the id of the document that it belongs to. */
function placeOf(value: object, path: readonly string[]): string {
  const [list, at = ''] = path;
  const documents = list === 'documents' && 'documents' in value ? value.documents : undefined;
  const document: unknown = Array.isArray(documents) ? documents[Number(at)] : undefined;
  const id = typeof document === 'object' && document !== null && 'doc_id' in document && document.doc_id;
  const words = path.join('.');
  const short = words.length > pathCharactersMax ? `${words.slice(0, pathCharactersMax)}…` : words;
  return `${short}${typeof id === 'string' ? ` (doc_id ${JSON.stringify(id)})` : ''}${words === '' ? '' : ': '}`;
}

const instead = 'pass a plain object, an array, a string or a number';

/** Why `JSON.stringify` would not write the value as it is given. `field` is what its `toJSON` gives, if it has one. */
function problemOf(given: unknown, field: unknown, inArray: boolean): string | undefined {
  switch (typeof field) {
    case 'number':
      return Number.isFinite(field) ? undefined : `JSON has no ${field}`;
    case 'bigint':
    case 'function':
    case 'symbol':
      return `JSON has no ${typeof field}: ${instead}`;
    case 'undefined':
      return inArray ? 'JSON has no undefined in an array: pass null, or leave it out' : undefined;
    case 'object':
      return problemOfObject(given, field);
    default:
      return undefined;
  }
}

function problemOfObject(given: unknown, field: object | null): string | undefined {
  const kind = kindOf(given);
  if (kind === 'Date' && Number.isNaN(Number(given))) return 'the Date is invalid';
  // A Buffer has a toJSON, which gives another object.
  if (ArrayBuffer.isView(given)) return `JSON has no ${kind}: pass an array or a string`;
  if (field === null || Array.isArray(field)) return undefined;
  const written = kindOf(field);
  if (written === 'String' || written === 'Boolean') return undefined;
  if (written === 'Number')
    return Number.isFinite(Number(field)) ? undefined : `JSON has no ${Number(field)}`;
  if (written !== 'Object') return `JSON has no ${written}: ${instead}`;
  // Plain objects of another realm have another Object.prototype, which has no prototype either.
  const prototype: unknown = Object.getPrototypeOf(field);
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null;
  if (isPlain || Object.keys(field).length > 0) return undefined;
  const { name } = field.constructor;
  return `JSON would write this object of class ${name} as {}: ${instead}`;
}

/** `Map` of a Map, `Object` of a plain object and of most classes. */
function kindOf(value: unknown): string {
  return Object.prototype.toString.call(value).slice('[object '.length, -1);
}
