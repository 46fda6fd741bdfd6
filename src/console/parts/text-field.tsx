/** Chooses the metadata field that holds the texts of an index, from which results show passages. The browser keeps the choice. */
import { useState } from 'preact/hooks';
import type { Api } from '../api.ts';
import { useLoaded } from '../work.ts';
import { Choice } from './field.tsx';

/** The field is looked for in the first documents. */
const sampledDocuments = 10;
const usualFields = ['text', 'body', 'content', 'passage'];

export interface TextField {
  /** Empty = no field. */
  readonly name: string;
  readonly fields: readonly string[];
  /** False until the first documents were looked at, if nothing was chosen. */
  readonly isKnown: boolean;
  readonly choose: (name: string) => void;
}

export function useTextField(api: Api, indexId: string): TextField {
  const key = `maxsimd.text.${indexId}`;
  const [chosen, setChosen] = useState(() => read(key));
  const loaded = useLoaded(() => stringFields(api, indexId), indexId);
  const { result: fields = [], failure } = loaded;
  const isKnown = chosen !== undefined || loaded.result !== undefined || failure !== undefined;
  const choose = (name: string): void => {
    setChosen(name);
    try {
      localStorage.setItem(key, name);
    } catch {
      // A browser that keeps nothing forgets the choice with the page.
    }
  };
  return {
    name: chosen ?? usualFields.find((field) => fields.includes(field)) ?? '',
    fields,
    isKnown,
    choose,
  };
}

export function TextFieldChoice({ name, fields, choose }: TextField) {
  const names = [...new Set(name === '' ? fields : [...fields, name])];
  return (
    <Choice
      name="Text in field"
      value={name}
      options={[['', 'none'], ...names.map((field) => [field, field] as const)]}
      onChange={choose}
    />
  );
}

async function stringFields(api: Api, indexId: string): Promise<readonly string[]> {
  const { data } = (await api.documents(indexId, sampledDocuments)).body;
  const fields = data.flatMap(({ metadata }) =>
    Object.entries(metadata).flatMap(([field, value]) => (typeof value === 'string' ? [field] : [])),
  );
  return [...new Set(fields)].toSorted();
}

function read(key: string): string | undefined {
  try {
    return localStorage.getItem(key) ?? undefined;
  } catch {
    return undefined;
  }
}
