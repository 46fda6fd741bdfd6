/** Chooses which metadata a result shows, and where it links to. The browser keeps the choice for each index. */
import { useState } from 'preact/hooks';
import { Check, Choice, Field, tied } from '../parts/field.tsx';

export interface CardChoice {
  /** The field that is the title; absent = the first usual one. */
  readonly title?: string;
  /** Absent = all. */
  readonly fields?: readonly string[];
  /** A URL with `{doc_id}`. */
  readonly link?: string;
}

const usualTitles = ['title', 'name', 'heading', 'subject'];

export function useCardChoice(indexId: string | undefined) {
  const key = `maxsimd.cards.${indexId}`;
  const [choice, setChoice] = useState(() => read(key));
  const change = (changed: CardChoice): void => {
    setChoice(changed);
    try {
      localStorage.setItem(key, JSON.stringify(changed));
    } catch {
      // A browser that keeps nothing forgets the choice with the page.
    }
  };
  return [choice, change] as const;
}

function read(key: string): CardChoice {
  try {
    return JSON.parse(localStorage.getItem(key) ?? '{}') as CardChoice;
  } catch {
    return {};
  }
}

export function titleField(
  { title }: CardChoice,
  metadata: Readonly<Record<string, unknown>>,
): string | undefined {
  return title ?? usualTitles.find((name) => typeof metadata[name] === 'string');
}

/** `undefined` without a template, and for anything but a web address: a link must not run a script. */
export function linkOf({ link = '' }: CardChoice, docId: string): string | undefined {
  try {
    const url = new URL(link.replaceAll('{doc_id}', () => encodeURIComponent(docId)));
    return ['http:', 'https:'].includes(url.protocol) ? url.href : undefined;
  } catch {
    return undefined;
  }
}

export function CardChoiceEditor({
  fields,
  value,
  onChange,
}: {
  fields: readonly string[];
  value: CardChoice;
  onChange: (choice: CardChoice) => void;
}) {
  const chosen = value.fields ?? fields;
  const { link = '' } = value;
  return (
    <details>
      <summary>Choose what results show</summary>
      <div class="panel">
        <div class="row options">
          <Choice
            name="Title"
            value={value.title ?? ''}
            options={[['', 'automatic'], ...fields.map((field) => [field, field] as const)]}
            onChange={(title) => {
              const { title: _before, ...others } = value;
              onChange(title === '' ? others : { ...others, title });
            }}
          />
          <Field name="Link, such as https://my-app/docs/{doc_id}" wide>
            <input type="url" {...tied(link, (text) => onChange({ ...value, link: text }))} />
          </Field>
        </div>
        <div class="row" role="group" aria-label="Fields">
          {fields.map((field) => (
            <Check
              key={field}
              name={field}
              value={chosen.includes(field)}
              onChange={(show) =>
                onChange({
                  ...value,
                  fields: fields.filter((one) => (one === field ? show : chosen.includes(one))),
                })
              }
            />
          ))}
        </div>
      </div>
    </details>
  );
}
