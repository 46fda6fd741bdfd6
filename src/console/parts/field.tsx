import type { ComponentChildren, TargetedInputEvent } from 'preact';

export interface FieldProps {
  readonly name: string;
  readonly wide?: boolean;
  readonly children: ComponentChildren;
}

export function Field({ name, wide = false, children }: FieldProps) {
  return (
    <label class={wide ? 'wide' : ''}>
      {name}
      {children}
    </label>
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

/** Ties a check box to a state. */
export function checked(value: boolean, onChange: (value: boolean) => void) {
  return {
    checked: value,
    onChange: ({ currentTarget }: TargetedInputEvent<HTMLInputElement>) => onChange(currentTarget.checked),
  } as const;
}

/** Starts the work when the form is submitted, in place of the browser's own request. */
export function submitted(work: { start(): void }) {
  return (event: Event) => {
    event.preventDefault();
    work.start();
  };
}
