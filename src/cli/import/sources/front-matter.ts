/**
 * Front matter: YAML between two lines `---` at the beginning of a Markdown file. YAML takes the code 0012 for the number 12
 * and the version 1.10 for 1.1. So a number whose text would change stays a string.
 */
import { isPair, isScalar, parseDocument, visit, YAMLParseError, type Scalar } from 'yaml';
import { messageOf } from '../../failure.ts';
import { plain } from './parquet-values.ts';

export interface FrontMatter {
  /** `undefined` without front matter. Numbers keep their digits, or are strings. */
  readonly content: unknown;
  /** The text behind it. */
  readonly body: string;
}

export class FrontMatterError extends Error {
  /** In the file, counted from 1. */
  readonly line: number;

  constructor(message: string, line: number, cause?: unknown) {
    super(message, { cause });
    this.line = line;
  }
}

/** The parser takes quadratic time in the worst case. Front matter with hundreds of fields is shorter than this. */
const bytesMax = 131_072;
const begin = /^---[ \t]*\r?\n/;
const end = /^(?:---|\.\.\.)[ \t]*\r?$\n?/m;

/** Whether numbers and booleans in this field stay strings. */
export type KeepsStrings = (field: string) => boolean;

/** Throws a `FrontMatterError` if there is no end, or no YAML. */
export function readFrontMatter(text: string, keepsStrings: KeepsStrings = () => false): FrontMatter {
  const [opening] = begin.exec(text) ?? [];
  if (opening === undefined) return { content: undefined, body: text };
  const rest = text.slice(opening.length);
  const closing = end.exec(rest);
  if (closing === null) throw new FrontMatterError('the front matter has no end: a line --- must follow', 1);
  const yaml = rest.slice(0, closing.index);
  if (Buffer.byteLength(yaml) > bytesMax)
    throw new FrontMatterError(`the front matter has more than ${bytesMax} bytes`, 1);
  try {
    return { content: valueOf(yaml, keepsStrings), body: rest.slice(closing.index + closing[0].length) };
  } catch (error) {
    const place = error instanceof YAMLParseError ? error.pos[0] : 0;
    // The YAML begins in line 2.
    throw new FrontMatterError(messageOf(error), yaml.slice(0, place).split('\n').length + 1, error);
  }
}

function valueOf(yaml: string, keepsStrings: KeepsStrings): unknown {
  // Unique keys and pretty errors would take quadratic time.
  const options = { uniqueKeys: false, prettyErrors: false, intAsBigInt: true, logLevel: 'error' } as const;
  const document = parseDocument(yaml, options);
  const [error] = document.errors;
  if (error !== undefined) throw error;
  visit(document, {
    Scalar: (_key, scalar, path) => {
      const { value } = scalar;
      const field = path.find(isPair)?.key;
      const isKept = isScalar(field) && keepsStrings(textOf(field));
      const isNumber = typeof value === 'number' || typeof value === 'bigint';
      const changes = isNumber && String(value) !== textOf(scalar);
      if (changes || (isKept && (isNumber || typeof value === 'boolean'))) scalar.value = textOf(scalar);
    },
  });
  return plain(document.toJS());
}

function textOf({ source, value }: Scalar): string {
  return source ?? String(value);
}
