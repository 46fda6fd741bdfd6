/**
 * Finds the types of the columns of CSV files. A column has numbers if each cell is a number as JSON writes it, and booleans
 * if each cell is true or false. Otherwise it has strings, so `007` keeps its zeros. Spaces around a cell, and words for "no
 * value" such as NA, do not count: in a column of numbers or booleans such a word is no field, and in a column of strings,
 * such as country codes, it is a string. A plus sign is read in a column that also has numbers without one, so telephone
 * numbers stay strings.
 *
 * All files are read to their ends before the first row is sent, because every cell decides. Standard input can be read
 * only once, so its first rows decide. A later cell of another type stays a string and is counted.
 */
import { parseJson } from '../../json.ts';
import { expiryField } from '../fields.ts';
import type { FileRow, Place, RowFile } from './row-file.ts';

export type ColumnType = 'number' | 'boolean' | 'string';
type Kind = ColumnType | 'signed' | 'none';

/** The cells of one kind in a column. */
interface Cells {
  count: number;
  /** The first of them. */
  readonly places: Place[];
}

type ColumnCells = Partial<Record<Kind, Cells>>;

/** A column of strings whose cells are mostly numbers or booleans, and the others. */
export interface Mixed extends Cells {
  readonly type: ColumnType;
}

const number = /^[-+]?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?$/;
const boolean = /^(?:true|false|True|False|TRUE|FALSE)$/;
/** Those that pandas, R, Excel and databases write. */
const noValue = /^(?:|-+|#?n\/?a|#n\/a n\/a|<na>|-?nan|null|none|nil)$/i;
const rowsHeldMax = 1000;
const placesKeptMax = 5;
/** A column with so many strings is one of strings, whatever follows. */
const stringsCountedMax = 1000;

export class ColumnTypes {
  /** Column -> type of all cells so far that have a value. */
  readonly chosen = new Map<string, ColumnType>();
  /** Column -> number of cells of another type, which stayed strings. */
  readonly exceptions = new Map<string, number>();
  /** Column of numbers or booleans -> number of cells with a word for "no value". */
  readonly noValues = new Map<string, number>();
  readonly #isTyped: (column: string) => boolean;
  readonly #cells = new Map<string, ColumnCells>();

  /** Other columns than `isTyped` names keep their strings. */
  constructor(isTyped: (column: string) => boolean) {
    this.#isTyped = isTyped;
  }

  /** The columns that would have another type without a few cells. */
  get mixed(): ReadonlyMap<string, Mixed> {
    const found = [...this.#cells].map(([column, cells]) => [column, mixedOf(cells)] as const);
    return new Map(found.filter((item): item is [string, Mixed] => item[1] !== undefined));
  }

  /** Reads files to their ends, or until all columns surely have strings. */
  async learnFrom(files: readonly RowFile[], signal: AbortSignal): Promise<void> {
    for (const { name, columns = [], rows } of files) {
      const open = columns.filter(this.#isTyped);
      if (open.length === 0) continue;
      for await (const row of rows()) {
        signal.throwIfAborted();
        this.#learn(row, name);
        if (open.every((column) => this.#isClosed(column))) break;
      }
    }
  }

  /** Learns from the first rows, and yields all rows. */
  async *learnHead(rows: AsyncGenerator<FileRow>, name: string): AsyncGenerator<FileRow> {
    const head: FileRow[] = [];
    while (head.length < rowsHeldMax) {
      const next = await rows.next();
      if (next.done === true) break;
      this.#learn(next.value, name);
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
    return { object: Object.fromEntries(cells.filter(([, value]) => value !== undefined)) };
  }

  #learn({ parsed, line }: FileRow, file: string): void {
    if ('problem' in parsed) return;
    for (const [column, cell] of Object.entries(parsed.object)) {
      if (!this.#isTyped(column) || this.#isClosed(column)) continue;
      const kind = kindOf(cell as string);
      const cells = this.#cells.get(column) ?? {};
      const ofKind = (cells[kind] ??= { count: 0, places: [] });
      ofKind.count += 1;
      if (ofKind.places.length < placesKeptMax) ofKind.places.push({ file, line });
      if (ofKind.count > 1) continue;
      this.#cells.set(column, cells);
      this.chosen.set(column, typeOf(cells));
    }
  }

  #isClosed(column: string): boolean {
    return (this.#cells.get(column)?.string?.count ?? 0) >= stringsCountedMax;
  }

  #valueOf(column: string, cell: string): unknown {
    const kind = kindOf(cell);
    if (kind === 'none' && column === expiryField && !this.#isTyped(column)) return undefined;
    const type = this.chosen.get(column);
    if (type === undefined || type === 'string') return cell;
    if (kind === type || (kind === 'signed' && type === 'number'))
      return parseJson(cell.trim().toLowerCase().replace(/^\+/, ''));
    const counts = kind === 'none' ? this.noValues : this.exceptions;
    counts.set(column, (counts.get(column) ?? 0) + 1);
    return kind === 'none' ? undefined : cell;
  }
}

function kindOf(cell: string): Kind {
  const text = cell.trim();
  if (noValue.test(text)) return 'none';
  if (number.test(text) && Number.isFinite(Number(text))) return text.startsWith('+') ? 'signed' : 'number';
  return boolean.test(text) ? 'boolean' : 'string';
}

function typeOf(cells: ColumnCells): ColumnType {
  if (cells.string !== undefined) return 'string';
  if (cells.number !== undefined) return cells.boolean === undefined ? 'number' : 'string';
  return cells.boolean === undefined || cells.signed !== undefined ? 'string' : 'boolean';
}

function mixedOf(cells: ColumnCells): Mixed | undefined {
  const { number: numbers, signed, boolean: booleans, string: strings } = cells;
  const numbersCount = numbers === undefined ? 0 : numbers.count + (signed?.count ?? 0);
  const type = numbersCount >= (booleans?.count ?? 0) ? 'number' : 'boolean';
  const others = (type === 'number' ? [strings, booleans] : [strings, numbers, signed]).filter(
    (item) => item !== undefined,
  );
  const count = others.reduce((sum, item) => sum + item.count, 0);
  const rest = type === 'number' ? numbersCount : (booleans?.count ?? 0);
  if (count === 0 || count > rest) return undefined;
  return { type, count, places: others.flatMap(({ places }) => places).slice(0, placesKeptMax) };
}
