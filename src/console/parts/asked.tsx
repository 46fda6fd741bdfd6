/** Asks a person once more before an act that is hard to undo. The way back has the focus. */
import { focusAtFirst } from './field.tsx';

export interface AskedProps {
  readonly name: string;
  /** The effect of the act. */
  readonly text: string;
  readonly act: string;
  readonly keep: string;
  readonly busy: boolean;
  readonly onAct: () => void;
  readonly onKeep: () => void;
}

export function Asked({ name, text, act, keep, busy, onAct, onKeep }: AskedProps) {
  return (
    <div class="panel" role="group" aria-label={name}>
      <p>{text}</p>
      <div class="row">
        <button type="button" class="danger" disabled={busy} onClick={onAct}>
          {act}
        </button>
        <button type="button" ref={focusAtFirst} onClick={onKeep}>
          {keep}
        </button>
      </div>
    </div>
  );
}
