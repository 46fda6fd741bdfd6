/** What a person fills in, with its name above it. */
import type { ComponentChildren, TargetedInputEvent } from 'preact';

export interface FieldProps {
  readonly name: string;
  /** It takes the whole row. */
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

/** Ties an input to a state. No browser offers what was typed in it before: keys are secrets, and queries may be. */
export function tied(value: string, onChange: (value: string) => void) {
  return {
    value,
    onInput: ({ currentTarget }: TargetedInputEvent<HTMLInputElement | HTMLTextAreaElement>) =>
      onChange(currentTarget.value),
    autocomplete: 'off',
  } as const;
}
