/** Finds the fields of a row that hold texts, for messages. */
import { isObject } from '../json.ts';

type Fields = Readonly<Record<string, unknown>>;

const textsMax = 10;
const depthMax = 4;
const beginningLength = 200;
const withoutSpaces =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;

/** Fields with strings, by their paths: those that hold several words, or else all. The longest goes first. */
export function textFieldsIn(fields: Fields): readonly string[] {
  const strings = stringsIn(fields).toSorted(([, one], [, other]) => other.length - one.length);
  const texts = strings.filter(([, text]) => isText(text));
  return (texts.length > 0 ? texts : strings).slice(0, textsMax).map(([name]) => name);
}

/** It begins with several words, or is in a script without spaces. A date and an address are no texts. */
export function isText(text: string): boolean {
  const beginning = text.slice(0, beginningLength);
  const words = beginning.split(/\s+/).filter((word) => /\p{L}/u.test(word));
  return words.length > 1 || withoutSpaces.test(beginning);
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
