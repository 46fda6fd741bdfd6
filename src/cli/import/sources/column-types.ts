/**
 * Finds the types of the columns of CSV files. A column has numbers if each cell is a number as JSON writes it, and booleans
 * if each cell is true or false. Otherwise it has strings, so `007` keeps its zeros. All files are read to their ends
 * before the first row is sent, because every cell decides. Standard input can be read only once, so its first rows
 * decide. A later cell of another type stays a string and is counted.
 */
import { parseJson } from '../../json.ts';
import type { FileRow, RowFile } from './row-file.ts';

export type ColumnType = 'number' | 'boolean' | 'string';

const number = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?$/;
const boolean = /^(?:true|false|True|False|TRUE|FALSE)$/;
const rowsHeldMax = 1000;

export class ColumnTypes {
  /** Column -> type of all cells so far. */
  readonly chosen = new Map<string, ColumnType>();
  /** Column -> number of cells of another type, which stayed strings. */
  readonly exceptions = new Map<string, number>();
  readonly #isTyped: (column: string) => boolean;

  /** Other columns than `isTyped` names keep their strings. */
  constructor(isTyped: (column: string) => boolean) {
    this.#isTyped = isTyped;
  }

  /** Reads files to their ends, or until all columns have strings. */
  async learnFrom(files: readonly RowFile[], signal: AbortSignal): Promise<void> {
    for (const { columns = [], rows } of files) {
      const open = columns.filter(this.#isTyped);
      if (open.length === 0) continue;
      for await (const row of rows()) {
        signal.throwIfAborted();
        this.#learn(row);
        if (open.every((column) => this.chosen.get(column) === 'string')) break;
      }
    }
  }

  /** Learns from the first rows, and yields all rows. */
  async *learnHead(rows: AsyncGenerator<FileRow>): AsyncGenerator<FileRow> {
    const head: FileRow[] = [];
    while (head.length < rowsHeldMax) {
      const next = await rows.next();
      if (next.done === true) break;
      this.#learn(next.value);
      head.push(next.value);
    }
    try {
      yield* head;
      yield* rows;
    } finally {
      await rows.return(undefined);
    }
  }

  typed(parsed: FileRow['parsed']): FileRow['parsed'] {
    if ('problem' in parsed) return parsed;
    const cells = Object.entries(parsed.object).map(([column, cell]) => [
      column,
      this.#valueOf(column, cell as string),
    ]);
    return { object: Object.fromEntries(cells) };
  }

  #learn({ parsed }: FileRow): void {
    if ('problem' in parsed) return;
    for (const [column, cell] of Object.entries(parsed.object)) {
      if (!this.#isTyped(column)) continue;
      const known = this.chosen.get(column);
      if (known === 'string') continue;
      const type = typeOf(cell as string);
      this.chosen.set(column, known === undefined || known === type ? type : 'string');
    }
  }

  #valueOf(column: string, cell: string): unknown {
    const type = this.chosen.get(column);
    if (type === undefined || type === 'string') return cell;
    if (typeOf(cell) === type) return parseJson(cell.toLowerCase());
    this.exceptions.set(column, (this.exceptions.get(column) ?? 0) + 1);
    return cell;
  }
}

function typeOf(cell: string): ColumnType {
  if (number.test(cell) && Number.isFinite(Number(cell))) return 'number';
  return boolean.test(cell) ? 'boolean' : 'string';
}
