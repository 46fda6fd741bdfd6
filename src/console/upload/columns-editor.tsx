/** Chooses the columns of an upload that hold ids, texts and titles. */
import { Choice } from '../parts/field.tsx';
import { usualColumns, type Columns } from './document-source.ts';

export interface ColumnsEditorProps {
  readonly names: readonly string[];
  readonly value: Columns;
  readonly onChange: (columns: Columns) => void;
}

export function ColumnsEditor({ names, value, onChange }: ColumnsEditorProps) {
  const usual = usualColumns(names);
  const chosen = columnsAmong(names, value);
  const { id = usual.id, text = usual.text, title = usual.title } = chosen;
  const others = names.filter((name) => ![id, text, title].includes(name));
  const part = (name: string, column: keyof Columns, current: string | undefined, none: string) => (
    <Choice
      name={name}
      value={current ?? ''}
      options={[
        ...(usual[column] === undefined ? [['', none] as const] : []),
        ...names.map((one) => [one, one] as const),
      ]}
      onChange={(picked) => onChange({ ...chosen, [column]: picked === '' ? undefined : picked })}
    />
  );
  return (
    <div class="stacked" role="group" aria-label="Columns">
      <div class="row options">
        {part('Id column', 'id', id, 'choose a column')}
        {part('Text column', 'text', text, 'choose a column')}
        {part('Title column', 'title', title, 'none')}
      </div>
      <p class="quiet">
        {title !== undefined && 'The title heads each result. '}
        {others.length === 0 ? 'There are no other columns.' : `Metadata: ${others.join(', ')}.`}
      </p>
    </div>
  );
}

/** Without columns that another file had. */
export function columnsAmong(names: readonly string[], { id, text, title }: Columns): Columns {
  const known = (name: string | undefined) => (name !== undefined && names.includes(name) ? name : undefined);
  return { id: known(id), text: known(text), title: known(title) };
}
