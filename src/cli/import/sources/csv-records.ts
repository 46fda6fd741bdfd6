/**
 * Cuts the text of a CSV file (RFC 4180) into records, so that no quotation mark joins rows in silence. A record is a line.
 * A line whose last cell opens with a quotation mark goes on up to the next line that has an odd number of marks, because
 * only such a line can close the cell. If these lines are no record, the first one is refused, and reading goes on in the
 * line behind it. So each line is looked at twice at most, and every line is a row, a part of a row or a refusal.
 *
 * Parsers of whole files cannot do this: after a wrong quotation mark they end, or they go on within the cell.
 */

/** Cells, or why there are none. */
export type CsvRecord = { readonly line: number } & (
  | { readonly cells: readonly string[]; readonly remark?: string }
  | { readonly problem: string }
);

export interface RecordFormat {
  readonly delimiter: string;
  /** A cell may be enclosed in quotation marks. */
  readonly hasQuotes: boolean;
  /** `\n` stands for `\r\n`, too. */
  readonly lineEnd: '\n' | '\r';
}

/** Bound one line and one record, and so the memory. A text of a document has far fewer. */
const charactersMax = 16 * 1024 * 1024;
const linesMax = 100_000;

const inside =
  'a quotation mark stands within a cell: CSV has it twice, in a cell that is in quotation marks';
const behind = 'text follows a quotation mark that ends a cell: within a cell, CSV has quotation marks twice';
const unclosed = 'a quotation mark begins a cell, and none ends it';
const tooLong = `the line has more than ${charactersMax} characters`;

const severalLines = 'have a cell of several lines';
const rowsInside =
  'have a cell of several lines, one of which looks like a row: if rows are missing, a quotation mark is too many there';
const enclosed =
  'have a cell with quotation marks around it, which stay: tabs separate the cells, so nothing is quoted';

/** Empty lines are left out. The first record is the header, and the others must have as many cells. */
export async function* readRecords(
  text: AsyncIterable<string>,
  format: RecordFormat,
): AsyncGenerator<CsvRecord> {
  const lines = new Lines(text, format.lineEnd);
  let width: number | undefined;
  try {
    for (;;) {
      const first = lines.buffered(0) ?? (await lines.at(0));
      if (first === undefined) return;
      if (isEmpty(first)) {
        lines.drop(1);
        continue;
      }
      const { record, lineCount } = await recordAt(lines, first, format, width);
      if ('cells' in record) width ??= record.cells.length;
      yield record;
      lines.drop(lineCount);
    }
  } finally {
    await lines.close();
  }
}

interface Taken {
  readonly record: CsvRecord;
  /** So many lines are done with. */
  readonly lineCount: number;
}

async function recordAt(
  lines: Lines,
  first: Line,
  format: RecordFormat,
  width: number | undefined,
): Promise<Taken> {
  const line = first.number;
  if (first.text === undefined) return { record: { line, problem: tooLong }, lineCount: 1 };
  const cells = cellsOf(first.text, format);
  if (typeof cells !== 'string') return { record: wholeLine(line, cells, format, width), lineCount: 1 };
  const refused: Taken = { record: { line, problem: cells }, lineCount: 1 };
  if (cells !== unclosed) return refused;
  const last = await lastLineOf(lines);
  if (last === undefined) return refused;
  const texts = Array.from({ length: last }, (_, place) => lines.buffered(place + 1)!.text!);
  const joined = cellsOf([first.text, ...texts].join(format.lineEnd), format);
  if (typeof joined === 'string') return refused;
  const hasRows =
    width !== undefined && width > 1 && texts.some((text) => cellsOf(text, format).length === width);
  if (width === undefined || joined.length === width)
    return {
      record: { line, cells: joined, remark: hasRows ? rowsInside : severalLines },
      lineCount: last + 1,
    };
  const problem = `lines ${line} to ${line + last} are one row of ${joined.length} fields, the header has ${width}: a quotation mark joins them`;
  return { record: { line, problem }, lineCount: hasRows ? 1 : last + 1 };
}

/** How far from the first line the cell that it opens can end; `undefined` = nowhere. */
async function lastLineOf(lines: Lines): Promise<number | undefined> {
  let characters = 0;
  for (let place = 1; place < linesMax; place += 1) {
    const line = lines.buffered(place) ?? (await lines.at(place));
    characters += line?.text?.length ?? 0;
    if (line?.text === undefined || characters > charactersMax) return undefined;
    if (line.isOdd) return place;
  }
  return undefined;
}

function wholeLine(
  line: number,
  cells: readonly string[],
  { hasQuotes }: RecordFormat,
  width: number | undefined,
): CsvRecord {
  if (width !== undefined && cells.length !== width)
    return { line, problem: `the line has ${cells.length} fields, the header ${width}` };
  const isEnclosed = !hasQuotes && cells.some((cell) => /^".*"$/.test(cell));
  return { line, cells, ...(isEnclosed && { remark: enclosed }) };
}

/** The cells of a record, or the problem with its quotation marks. */
function cellsOf(
  record: string,
  { delimiter, hasQuotes, lineEnd }: RecordFormat,
): readonly string[] | string {
  const text = lineEnd === '\n' && record.endsWith('\r') ? record.slice(0, -1) : record;
  if (!hasQuotes || !text.includes('"')) return text.split(delimiter);
  const cells: string[] = [];
  for (let start = 0; ; start += 1) {
    if (text[start] === '"') {
      const end = closingMark(text, start + 1);
      if (end === -1) return unclosed;
      cells.push(text.slice(start + 1, end).replaceAll('""', '"'));
      start = end + 1;
      if (start < text.length && text[start] !== delimiter) return behind;
    } else {
      const end = text.indexOf(delimiter, start);
      const cell = text.slice(start, end === -1 ? undefined : end);
      if (cell.includes('"')) return inside;
      cells.push(cell);
      start += cell.length;
    }
    if (start === text.length) return cells;
  }
}

/** Where the cell ends whose text begins there. -1 = it does not. */
function closingMark(text: string, start: number): number {
  let mark = text.indexOf('"', start);
  while (mark !== -1 && text[mark + 1] === '"') mark = text.indexOf('"', mark + 2);
  return mark;
}

interface Line {
  /** Counted from 1. */
  readonly number: number;
  /** `undefined` = longer than the bound. */
  readonly text: string | undefined;
  /** It has an odd number of quotation marks. */
  readonly isOdd: boolean;
}

function isEmpty({ text }: Line): boolean {
  return text === '' || text === '\r';
}

/** The lines from the record on that is read. */
class Lines {
  readonly #parts: AsyncIterator<string>;
  readonly #lineEnd: string;
  #lines: Line[] = [];
  /** Lines before it are done with. */
  #head = 0;
  #count = 0;
  /** The beginning of a line. */
  #rest = '';
  #isRestTooLong = false;
  #isEnd = false;

  constructor(parts: AsyncIterable<string>, lineEnd: string) {
    this.#parts = parts[Symbol.asyncIterator]();
    this.#lineEnd = lineEnd;
  }

  buffered(place: number): Line | undefined {
    return this.#lines[this.#head + place];
  }

  /** `undefined` = the text ends before. */
  async at(place: number): Promise<Line | undefined> {
    while (this.buffered(place) === undefined && !this.#isEnd) await this.#read();
    return this.buffered(place);
  }

  drop(count: number): void {
    this.#head += count;
  }

  async close(): Promise<void> {
    await this.#parts.return?.();
  }

  async #read(): Promise<void> {
    const next = await this.#parts.next();
    // A record of many lines must not move them with each part of the text.
    if (this.#head * 2 > this.#lines.length) {
      this.#lines.splice(0, this.#head);
      this.#head = 0;
    }
    this.#isEnd = next.done === true;
    const [first = '', ...others] = next.done === true ? [] : next.value.split(this.#lineEnd);
    this.#continue(first);
    for (const text of others) {
      this.#finish();
      this.#continue(text);
    }
    if (this.#isEnd && (this.#rest !== '' || this.#isRestTooLong)) this.#finish();
  }

  #continue(text: string): void {
    this.#isRestTooLong ||= this.#rest.length + text.length > charactersMax;
    this.#rest = this.#isRestTooLong ? '' : this.#rest + text;
  }

  #finish(): void {
    this.#count += 1;
    const text = this.#isRestTooLong ? undefined : this.#rest;
    this.#lines.push({ number: this.#count, text, isOdd: hasOddMarks(this.#rest) });
    this.#rest = '';
    this.#isRestTooLong = false;
  }
}

function hasOddMarks(text: string): boolean {
  let isOdd = false;
  for (let mark = text.indexOf('"'); mark !== -1; mark = text.indexOf('"', mark + 1)) isOdd = !isOdd;
  return isOdd;
}
