/** A table. Where the screen is narrow, each row becomes a list of names and values, so that nothing is cut. */
import type { ComponentChildren } from 'preact';

export interface Column {
  readonly name: string;
  readonly number?: boolean;
}

export interface TableProps {
  readonly name: string;
  readonly columns: readonly Column[];
  /** The first cell names its row. */
  readonly rows: readonly {
    readonly key: string;
    readonly selected?: boolean;
    readonly cells: readonly ComponentChildren[];
  }[];
}

export function Table({ name, columns, rows }: TableProps) {
  const kind = (at: number): string => (columns[at]?.number === true ? 'number' : '');
  return (
    <table role="table">
      <caption class="heard">{name}</caption>
      <thead role="rowgroup">
        <tr role="row">
          {columns.map((column, at) => (
            <th key={column.name} role="columnheader" scope="col" class={kind(at)}>
              {column.name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {rows.map(({ key, selected = false, cells: [first, ...others] }) => (
          <tr key={key} role="row" class={selected ? 'selected' : undefined}>
            <th role="rowheader" scope="row">
              {first}
            </th>
            {others.map((cell, at) => (
              <td
                key={columns[at + 1]?.name}
                role="cell"
                class={kind(at + 1)}
                data-name={columns[at + 1]?.name}
              >
                {cell}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
