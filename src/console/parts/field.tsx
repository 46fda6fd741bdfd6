import type { ComponentChildren, TargetedInputEvent } from 'preact';

export interface FieldProps {
  readonly name: string;
  /** It takes the width that is left. */
  readonly wide?: boolean;
  readonly children: ComponentChildren;
}

export function Field({ name, wide = false, children }: FieldProps) {
  return (
    <label class={wide ? 'grow' : ''}>
      {name}
      {children}
    </label>
  );
}

/** A check box before its name. */
export function Check({
  name,
  value,
  onChange,
}: {
  name: string;
  value: boolean;
  onChange: (value: boolean) => void;
}) {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={value}
        onChange={({ currentTarget }: TargetedInputEvent<HTMLInputElement>) =>
          onChange(currentTarget.checked)
        }
      />
      {name}
    </label>
  );
}

/** When documents expire, by the clock of the person. Empty = never. */
export function ExpiryField({
  value,
  readOnly = false,
  onChange,
}: {
  value: string;
  readOnly?: boolean;
  onChange: (value: string) => void;
}) {
  return (
    <Field name="Expires (empty: never)">
      <input type="datetime-local" step="1" readOnly={readOnly} {...tied(value, onChange)} />
    </Field>
  );
}

/** The value of an `ExpiryField` as the API takes it, and back. */
export function expiresAt(value: string): string | null {
  return value === '' ? null : new Date(value).toISOString();
}

export function expiryValue(timestamp: string | undefined): string {
  if (timestamp === undefined) return '';
  const time = new Date(timestamp);
  return new Date(time.getTime() - 60_000 * time.getTimezoneOffset()).toISOString().slice(0, 19);
}

export function MatchFieldsField({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  return (
    <Field name="Match fields (separated by commas)">
      <input {...tied(value, onChange)} />
    </Field>
  );
}

export function namesIn(text: string): readonly string[] {
  return text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}

export function Choice({
  name,
  value,
  options,
  focused = false,
  describedBy,
  onChange,
}: {
  name: string;
  value: string;
  /** It takes the focus when it appears. */
  focused?: boolean;
  /** The id of the element that explains it. */
  describedBy?: string;
  /** Value and what the person reads. */
  options: readonly (readonly [string, string])[];
  onChange: (value: string) => void;
}) {
  return (
    <Field name={name}>
      <select
        {...(focused ? { ref: focusAtFirst } : {})}
        aria-describedby={describedBy}
        value={value}
        onChange={({ currentTarget }: TargetedInputEvent<HTMLSelectElement>) => onChange(currentTarget.value)}
      >
        {options.map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
    </Field>
  );
}

/** Ties an input to a state. Browsers must not offer earlier entries: keys are secrets, and queries may be. */
export function tied(value: string, onChange: (value: string) => void) {
  return {
    value,
    onInput: ({ currentTarget }: TargetedInputEvent<HTMLInputElement | HTMLTextAreaElement>) =>
      onChange(currentTarget.value),
    autocomplete: 'off',
  } as const;
}

/** Starts the work when the form is submitted, in place of the browser's own request. */
export function submitted(work: { start(): void }) {
  return (event: Event) => {
    event.preventDefault();
    work.start();
  };
}

/** For `ref`: where a person goes on when the element appears. */
export function focusAtFirst(element: HTMLElement | null): void {
  element?.focus();
}
