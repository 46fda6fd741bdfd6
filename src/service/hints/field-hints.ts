/**
 * Says why conditions may find nothing: no document has a field, or the documents have values of another kind there. A few
 * documents of the index are looked at. So it costs little, however large the index is.
 */
import { nearestName } from '../../input/settings.ts';
import { canonicalMembers } from '../../index/terms/canonical-json.ts';
import { comparedBy, comparedFlags, requiredLeaves, type Leaf } from '../../index/terms/condition-tree.ts';
import { conditionTree } from '../../index/terms/condition.ts';
import { valuesAt } from '../../index/terms/field-path.ts';
import type { JsonObjectText, SearchRequest } from '../contract.ts';

export interface Sample {
  /** Metadata of documents, at least one. */
  readonly objects: readonly JsonObjectText[];
  /** Whether the index has no other documents. */
  readonly isWhole: boolean;
}

/** A hint shows at most this many characters of a field's name, and looks for no name that is longer. */
const nameLengthMax = 64;
/** Names of fields that a wrong one is compared with, and how deep objects are looked into for them. */
const namesMax = 300;
const namesDepthMax = 4;

type Json = null | boolean | number | string | readonly Json[] | Fields;
type Fields = { readonly [name: string]: Json };
type Kind = 'null' | 'true or false' | 'a number' | 'a string' | 'an array' | 'an object';

/** A field, as a condition compares it. */
interface Asked {
  readonly field: string;
  /** Kinds of the values that could meet it. Absent: of any kind. */
  readonly kinds?: ReadonlySet<Kind>;
}

/** `undefined`: the documents show no reason. */
export function fieldHint(
  { filter, where }: Pick<SearchRequest, 'filter' | 'where'>,
  { objects, isWhole }: Sample,
): string | undefined {
  const documents = objects.map((object) => JSON.parse(object) as Fields);
  const first = `the first ${documents.length} documents`;
  const [none, within] = isWhole ? ['no document', 'the documents'] : [`none of ${first}`, first];
  const hintOf = ({ field, kinds }: Asked, found: ReadonlySet<Kind>): string | undefined => {
    if (found.size === 0) return `${none} has the field ${shownName(field)}${nearby(field, documents)}`;
    if (kinds === undefined || kinds.size === 0 || [...kinds].some((kind) => found.has(kind)))
      return undefined;
    const compared = `${shownName(field)} is ${[...found].join(' or ')} in ${within}, and is compared with`;
    return `${compared} ${[...kinds].join(' or ')}${advice(kinds, found)}`;
  };
  for (const [token, value] of filter === undefined ? [] : canonicalMembers(filter)) {
    const field = JSON.parse(token) as string;
    const values = documents.flatMap((fields) => (Object.hasOwn(fields, field) ? [fields[field]!] : []));
    if (values.length === 0 && documents.some((fields) => valuesAt(fields, field).values.length > 0))
      return `filter takes names as they are: where finds the nested field ${shownName(field)}`;
    const asked = { field, kinds: new Set([kindOf(JSON.parse(value) as Json)]) };
    const hint = hintOf(asked, new Set(values.map(kindOf)));
    if (hint !== undefined) return hint;
  }
  // Many conditions may be on one field.
  const kindsOf = new Map<string, ReadonlySet<Kind>>();
  for (const leaf of where === undefined ? [] : requiredLeaves(conditionTree(where, 'where'))) {
    const asked = askedBy(leaf);
    const found = kindsOf.get(asked.field) ?? kindsAt(documents, asked.field);
    kindsOf.set(asked.field, found);
    const hint = hintOf(asked, found);
    if (hint !== undefined) return hint;
  }
  return undefined;
}

export function shownName(field: string): string {
  return JSON.stringify(field.slice(0, nameLengthMax).toWellFormed());
}

function askedBy(leaf: Leaf): Asked {
  const field = JSON.parse(leaf.field) as string;
  const kindsOf = (tokens: Iterable<string>): ReadonlySet<Kind> =>
    new Set(Array.from(tokens, (token) => kindOf(JSON.parse(token) as Json)));
  if (leaf.kind === 'terms') return { field, kinds: kindsOf(leaf.values) };
  switch (comparedBy(leaf)) {
    case comparedFlags.presence:
      return { field };
    case comparedFlags.items:
      return { field, kinds: new Set<Kind>(['an array']) };
    case comparedFlags.dates:
    case comparedFlags.prefix:
      return { field, kinds: new Set<Kind>(['a string']) };
    default:
      return { field, kinds: kindsOf([leaf.low || leaf.high]) };
  }
}

function advice(asked: ReadonlySet<Kind>, found: ReadonlySet<Kind>): string {
  if (found.has('an array') && found.size === 1) return ': contains finds an item of an array';
  if (asked.has('an array')) return ': write the value alone, or in for one of several values';
  return '';
}

function kindOf(value: Json): Kind {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'boolean') return 'true or false';
  if (typeof value === 'object') return 'an object';
  return typeof value === 'number' ? 'a number' : 'a string';
}

function isObject(value: Json | undefined): value is Fields {
  return value !== undefined && kindOf(value) === 'an object';
}

function kindsAt(documents: readonly Fields[], field: string): ReadonlySet<Kind> {
  const kindsOf = (fields: Fields): readonly Kind[] => {
    const { values, isMany } = valuesAt(fields, field);
    return isMany && values.length > 0 ? ['an array'] : (values as readonly Json[]).map(kindOf);
  };
  return new Set(documents.flatMap(kindsOf));
}

/** The field that was probably meant. */
function nearby(field: string, documents: readonly Fields[]): string {
  if (field.length > nameLengthMax) return '';
  const names = new Set<string>();
  const note = (fields: Fields, above: string, depth: number): void => {
    for (const [name, value] of Object.entries(fields)) {
      if (names.size >= namesMax) return;
      if ((above + name).length <= nameLengthMax) names.add(above + name);
      const inside = [value].flat().filter(isObject);
      if (depth < namesDepthMax) for (const one of inside) note(one, `${above}${name}.`, depth + 1);
    }
  };
  for (const fields of documents) note(fields, '', 1);
  const near = nearestName(field, [...names]);
  return near === undefined ? '' : `, but there is ${shownName(near)}`;
}
