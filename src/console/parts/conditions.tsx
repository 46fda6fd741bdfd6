/** Builds a `where` from the fields that the documents of an index have. A person may also write it as JSON. */
import { useId, useState } from 'preact/hooks';
import type { Api, JsonObject } from '../api.ts';
import { Failure } from './failure.tsx';
import { Choice, Field, tied } from './field.tsx';
import { shown } from '../format.ts';
import { jsonObject } from './json-object.ts';
import { useLoaded, useWork, type Work } from '../work.ts';

const operators = {
  is: 'is',
  not: 'is not',
  gte: 'is at least',
  lte: 'is at most',
  starts_with: 'starts with',
  after: 'is after the date',
  before: 'is before the date',
  contains: 'has the item',
  exists: 'exists',
  missing: 'is missing',
} as const;
type Operator = keyof typeof operators;

const operatorsOf = {
  string: ['is', 'not', 'starts_with', 'gte', 'lte', 'after', 'before', 'exists', 'missing'],
  number: ['is', 'not', 'gte', 'lte', 'exists', 'missing'],
  boolean: ['is', 'not', 'exists', 'missing'],
  strings: ['contains', 'exists', 'missing'],
  numbers: ['contains', 'exists', 'missing'],
  other: ['exists', 'missing'],
} as const satisfies Record<string, readonly Operator[]>;
type Kind = keyof typeof operatorsOf;

interface Condition {
  readonly field: string;
  readonly kind: Kind;
  readonly operator: Operator;
  readonly value: string;
}

export interface Conditions {
  readonly list: readonly Condition[];
  /** In place of the list, if the person writes JSON. */
  readonly json?: string | undefined;
}

export const noConditions: Conditions = { list: [] };

/** Fields are those of the first documents. */
const sampledDocuments = 100;
const suggestedValues = 20;

/** `undefined`: no condition. Throws an error that says what is wrong. */
export function whereOf({ list, json }: Conditions): JsonObject | undefined {
  if (json !== undefined) return jsonObject('the condition', json);
  const where: Record<string, Record<string, unknown>> = {};
  for (const { field, kind, operator, value } of list) {
    const [word, operand] = operation(operator, typed(kind, value));
    const ofField = (where[field] ??= {});
    if (word in ofField)
      throw new Error(`${field} has two conditions of one kind: write JSON, with any_of or contains_all`);
    ofField[word] = operand;
  }
  if (list.length === 0) return undefined;
  const short = (ofField: Readonly<Record<string, unknown>>): unknown =>
    Object.keys(ofField).join() === 'in' ? (ofField['in'] as readonly unknown[])[0] : ofField;
  return Object.fromEntries(Object.entries(where).map(([field, ofField]) => [field, short(ofField)]));
}

/** Reads the JSON text of a `where`. It stays JSON text where the fields cannot show it. */
export function conditionsIn(json: string): Conditions {
  try {
    const where = jsonObject('the condition', json);
    const list = Object.entries(where).flatMap(([field, given]) => conditionsOn(field, given));
    if (JSON.stringify(whereOf({ list })) === JSON.stringify(where)) return { list };
  } catch {
    // A person sees and repairs it as text.
  }
  return { list: [], json };
}

function conditionsOn(field: string, given: unknown): readonly Condition[] {
  const isPlain = typeof given !== 'object' || given === null || Array.isArray(given);
  return Object.entries(isPlain ? { is: given } : given).flatMap(([word, operand]) => {
    const operator = word === 'exists' && operand === false ? 'missing' : word;
    const kind = kindFor(operator, operand);
    const isShown = operatorsOf[kind].some((one) => one === operator);
    return isShown ? [{ field, kind, operator: operator as Operator, value: String(operand) }] : [];
  });
}

/** The kind of a field by a condition on it. */
function kindFor(operator: string, operand: unknown): Kind {
  if (operator === 'exists' || operator === 'missing') return 'other';
  return operator === 'contains' ? kindOf([operand]) : kindOf(operand);
}

function operation(operator: Operator, operand: unknown): readonly [string, unknown] {
  if (operator === 'is') return ['in', [operand]];
  if (operator === 'exists') return ['exists', true];
  if (operator === 'missing') return ['exists', false];
  return [operator, operand];
}

function typed(kind: Kind, value: string): unknown {
  if (kind === 'boolean') return value === 'true';
  if (kind !== 'number' && kind !== 'numbers') return value;
  const number = Number(value);
  if (value.trim() === '' || !Number.isFinite(number))
    throw new Error(`${value || 'the value'} is no number`);
  return number;
}

async function fieldsOf(api: Api, indexId: string): Promise<ReadonlyMap<string, Kind>> {
  const { data } = (await api.documents(indexId, sampledDocuments)).body;
  const fields = new Map<string, Kind>();
  for (const { metadata } of data) addFields(fields, metadata, '');
  return fields;
}

/** Fields of objects have their paths. */
function addFields(fields: Map<string, Kind>, object: JsonObject, above: string): void {
  for (const [name, value] of Object.entries(object)) {
    const field = above + name;
    if (value !== null && !fields.has(field)) fields.set(field, kindOf(value));
    if (isObject(value)) addFields(fields, value, `${field}.`);
  }
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function kindOf(value: unknown): Kind {
  const type = typeof value;
  if (type === 'string' || type === 'number' || type === 'boolean') return type;
  if (!Array.isArray(value)) return 'other';
  return typeof value[0] === 'number' ? 'numbers' : 'strings';
}

export function ConditionsEditor({
  api,
  indexId,
  value,
  onChange,
}: {
  api: Api;
  indexId: string;
  value: Conditions;
  onChange: (conditions: Conditions) => void;
}) {
  const { list, json } = value;
  // Conditions of an address are there before the fields are.
  const [hasGiven] = useState(list.length > 0);
  const given = useLoaded(async () => (hasGiven ? fieldsOf(api, indexId) : undefined));
  const add: Work<ReadonlyMap<string, Kind>> = useWork(async () => {
    const fields = add.result ?? given.result ?? (await fieldsOf(api, indexId));
    const [first] = fields;
    if (first === undefined) throw new Error('The documents have no metadata to filter by.');
    const [field, kind] = first;
    onChange({ list: [...list, { field, kind, operator: operatorsOf[kind][0], value: '' }] });
    return fields;
  });
  const write = useWork(async () =>
    onChange({ list, json: JSON.stringify(whereOf(value) ?? {}, undefined, 2) }),
  );
  return (
    <fieldset class="stacked">
      <legend class="heard">Conditions</legend>
      {json === undefined ? (
        list.map((condition, at) => (
          <ConditionRow
            key={at}
            api={api}
            indexId={indexId}
            fields={add.result ?? given.result ?? new Map()}
            value={condition}
            onChange={(changed) =>
              onChange({ list: changed === undefined ? list.toSpliced(at, 1) : list.with(at, changed) })
            }
          />
        ))
      ) : (
        <Field name="Where (JSON)">
          <textarea class="code" rows={4} {...tied(json, (text) => onChange({ list, json: text }))} />
        </Field>
      )}
      <div class="row">
        {json === undefined && (
          <button type="button" class="plain" disabled={add.busy} onClick={() => add.start()}>
            Add a condition
          </button>
        )}
        <button
          type="button"
          class="plain"
          onClick={() => (json === undefined ? write.start() : onChange({ list }))}
        >
          {json === undefined ? 'Write JSON' : 'Use the fields'}
        </button>
      </div>
      <Failure of={add.failure ?? write.failure} />
    </fieldset>
  );
}

function ConditionRow({
  api,
  indexId,
  fields,
  value: condition,
  onChange,
}: {
  api: Api;
  indexId: string;
  fields: ReadonlyMap<string, Kind>;
  value: Condition;
  onChange: (condition: Condition | undefined) => void;
}) {
  const { field, kind, operator, value } = condition;
  const suggestions = useLoaded(
    () => api.facets(indexId, { fields: [field], limit: suggestedValues }),
    field,
  );
  const listId = useId();
  const values = suggestions.result?.body.facets[0]?.values ?? [];
  const choose = (chosen: string): void => {
    const other = fields.get(chosen) ?? 'string';
    onChange({ field: chosen, kind: other, operator: operatorsOf[other][0], value: '' });
  };
  return (
    <div class="condition">
      <Choice
        name="Field"
        focused
        value={field}
        options={[...new Set([field, ...fields.keys()])].map((name) => [name, name])}
        onChange={choose}
      />
      <Choice
        name="Condition"
        value={operator}
        options={operatorsOf[kind].map((one) => [one, operators[one]])}
        onChange={(chosen) => onChange({ ...condition, operator: chosen as Operator })}
      />
      {operator === 'exists' || operator === 'missing' ? (
        <span />
      ) : (
        <Field name="Value">
          <input required list={listId} {...tied(value, (text) => onChange({ ...condition, value: text }))} />
          <datalist id={listId}>
            {kind === 'strings' || kind === 'numbers'
              ? undefined
              : values.map(({ value: one }) => <option key={shown(one)} value={shown(one)} />)}
          </datalist>
        </Field>
      )}
      <button type="button" onClick={() => onChange(undefined)}>
        Remove
      </button>
    </div>
  );
}
