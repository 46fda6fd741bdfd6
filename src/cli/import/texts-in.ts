/** Finds the fields of a row that hold texts, for messages. */
import { isObject } from '../json.ts';

type Fields = Readonly<Record<string, unknown>>;

const textsMax = 10;
const depthMax = 4;

/** Fields with strings, by their paths: those that hold several words, or else all. The longest goes first. */
export function textFieldsIn(fields: Fields): readonly string[] {
  const strings = stringsIn(fields).toSorted(([, one], [, other]) => other.length - one.length);
  const texts = strings.filter(([, text]) => isText(text));
  return (texts.length > 0 ? texts : strings).slice(0, textsMax).map(([name]) => name);
}

/** Several words, also in scripts without spaces. An address is none. */
export function isText(text: string): boolean {
  return /\S\s+\S/.test(text) || /[^\s!-~\u00a0-\u024f]/.test(text);
}

export function stringsIn(
  fields: Fields,
  prefix = '',
  depth = depthMax,
): readonly (readonly [string, string])[] {
  return Object.entries(fields).flatMap(([name, value]): readonly (readonly [string, string])[] => {
    if (typeof value === 'string') return value.trim() === '' ? [] : [[prefix + name, value]];
    return depth > 1 && isObject(value) ? stringsIn(value, `${prefix}${name}.`, depth - 1) : [];
  });
}
