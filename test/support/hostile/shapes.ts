/**
 * Makes bodies that take long to read. A body is the example of a route in which one value is made very large. A shape says
 * which value and how. A search compares shapes, changes them a little, and prints the worst.
 */
import { bodyBytesMax } from '../../../src/http/limits.ts';
import type { Random } from '../running/random.ts';
import type { Route } from '../running/routes.ts';

const wraps = [
  'string',
  'number',
  'array',
  'object',
  'members',
  'lists',
  'objects',
  'spaces',
  'key',
  'raw',
] as const;
const endings = ['whole', 'cut', 'wrong'] as const;
/** Bytes of the large value: the whole body, the bounds of the contract, and less. */
const sizes = [64, 1024, 8 * 1024 - 64, 16 * 1024 - 64, 64 * 1024, 100 * 1024, bodyBytesMax] as const;
const documentCounts = [1, 50] as const;

export interface Shape {
  readonly example: number;
  /** The position of the replaced value among the values of the example. */
  readonly place: number;
  readonly wrap: (typeof wraps)[number];
  /** The repeated parts: `value` is JSON, `text` is inside a string. */
  readonly value: string;
  readonly text: string;
  /** Each repetition has a number, so that no two are equal. */
  readonly distinct: boolean;
  readonly bytes: number;
  readonly documents: number;
  readonly ending: (typeof endings)[number];
}

const values = [
  '0',
  '-0',
  '0.1',
  '1e308',
  '1e-999999999999999999',
  '12345678901234567890',
  'true',
  'null',
  '""',
  '[]',
  '{}',
  '[[[[[[[[]]]]]]]]',
  '{"":{"":{"":{}}}}',
  '{"a":0,"a":1}',
  '"\\u0000"',
];
const texts = [
  'a',
  'a ',
  ' ',
  '\\n',
  '\\"',
  '\\\\',
  '\\u0000',
  '\\ud800',
  '\\ud83d\\ude00',
  '!',
  'é',
  'e\u0301',
  '\u0315\u0300',
  'ﬃ',
  '\ufdfa',
  '東',
  '\u1112\u1161\u11ab',
  '👩\u200d',
  '\u200f\u202a',
  '[MASK]',
  '##s',
  'ı',
  'ẞ',
];

export function randomShape(random: Random): Shape {
  return {
    example: random.integer(0, 9),
    place: random.integer(0, 99),
    wrap: random.pick(wraps),
    value: random.pick(values),
    text: randomText(random),
    distinct: random.next() < 0.5,
    bytes: random.pick(sizes),
    documents: random.pick(documentCounts),
    ending: random.next() < 0.7 ? 'whole' : random.pick(endings),
  };
}

/** A copy of a shape in which one or two properties are changed. */
export function changed(shape: Shape, random: Random): Shape {
  const other = randomShape(random);
  const keys = Object.keys(shape) as (keyof Shape)[];
  const taken = [random.pick(keys), random.pick(keys)].map((key) => [key, other[key]]);
  const next = { ...shape, ...Object.fromEntries(taken) } as Shape;
  if (random.next() < 0.8) return next;
  return { ...next, text: next.text + other.text, value: `[${next.value},${other.value}]` };
}

function randomText(random: Random): string {
  if (random.next() < 0.7) return random.pick(texts);
  const code = random.integer(0x20, 0x1_ffff);
  return code >= 0xd800 && code < 0xe000 ? 'a' : JSON.stringify(String.fromCodePoint(code)).slice(1, -1);
}

const marker = '@here@';

/** The body of a shape. It has at most `bytesMax` bytes. */
export function bodyOf(route: Route, shape: Shape, bytesMax: number, unique: string): string {
  const examples = route.examples.length === 0 ? [{}] : route.examples;
  const body = structuredClone(examples[shape.example % examples.length]) as Record<string, unknown>;
  if ('name' in body) body['name'] = unique;
  if (Array.isArray(body['documents'])) {
    const [document] = body['documents'] as object[];
    body['documents'] = Array.from({ length: shape.documents }, (_, n) => ({
      metadata: { kind: 'whale' },
      ...document,
      doc_id: `d${n}`,
    }));
  }
  const places = placesOf(body);
  const place = places[shape.place % places.length]!;
  const pieces = marked(body, place, shape.wrap === 'members').split(
    shape.wrap === 'members' ? `"${marker}":0` : `"${marker}"`,
  );
  const room = (bytesMax - Buffer.byteLength(pieces.join(''))) / Math.max(1, pieces.length - 1) - 16;
  const filling = fillingOf(shape, Math.max(0, Math.min(shape.bytes, room)));
  const text = pieces.join(filling);
  if (shape.ending === 'cut') return text.slice(0, -2);
  return shape.ending === 'wrong' ? `${text.slice(0, -1)},"":}` : text;
}

type Path = readonly (string | number)[];

/** The paths to all values of the example. Paths within the first document stand for those of every document. */
function placesOf(value: unknown, path: Path = []): readonly Path[] {
  if (typeof value !== 'object' || value === null) return [path];
  const inner = Array.isArray(value) ? [['0', value[0]] as const] : Object.entries(value);
  return [path, ...inner.flatMap(([key, each]) => placesOf(each, [...path, key]))];
}

/** The text of the body with a marker in place of a value, or as one more member of it. */
function marked(body: object, path: Path, asMember: boolean): string {
  const put = (value: unknown, rest: Path): unknown => {
    const [key, ...further] = rest;
    if (Array.isArray(value) && key !== undefined) return value.map((each) => put(each, further));
    if (key !== undefined) {
      const object = value as Record<string, unknown>;
      return { ...object, [key]: put(object[key], further) };
    }
    if (!asMember) return marker;
    return typeof value === 'object' && !Array.isArray(value) ? { ...value, [marker]: 0 } : { [marker]: 0 };
  };
  return JSON.stringify(put(body, path));
}

function fillingOf(shape: Shape, bytes: number): string {
  const { wrap, value, text } = shape;
  const members = (): string => repeated(shape, bytes, (n) => `,"${text}${n}":${value}`).slice(1) || '"":0';
  switch (wrap) {
    case 'string':
      return `"${repeated(shape, bytes, (n) => `${text}${n}`)}"`;
    case 'key':
      return `{"${repeated(shape, bytes, (n) => `${text}${n}`)}":${value}}`;
    case 'number':
      return `1${'0123456789'.repeat(bytes / 10)}`;
    case 'array':
      return `[${repeated(shape, bytes, (n) => (shape.distinct ? `,[${value},"${n}"]` : `,${value}`)).slice(1)}]`;
    case 'object':
      return `{${members()}}`;
    case 'members':
      return members();
    case 'lists':
      return shape.distinct ? '['.repeat(bytes) : `${'['.repeat(bytes / 2)}${']'.repeat(bytes / 2)}`;
    case 'objects':
      return shape.distinct
        ? '{"":'.repeat(bytes / 4)
        : `${'{"":'.repeat(bytes / 5)}0${'}'.repeat(bytes / 5)}`;
    case 'spaces':
      return `${' \n'.repeat(bytes / 2)}0`;
    default:
      return value.repeat(bytes / Buffer.byteLength(value));
  }
}

function repeated({ distinct }: Shape, bytes: number, unit: (n: string) => string): string {
  if (!distinct) {
    const one = unit('');
    return one.repeat(bytes / Buffer.byteLength(one));
  }
  const units: string[] = [];
  for (let length = 0, n = 0; ; n += 1) {
    const next = unit(n.toString(36));
    length += Buffer.byteLength(next);
    if (length > bytes) return units.join('');
    units.push(next);
  }
}
