/**
 * Relevance judgements ("qrels"): query, document and grade. Read are
 *
 *   BEIR              query-id <tab> corpus-id <tab> score, with or without this header
 *   TREC              query iteration document grade, separated by spaces or tabs
 *   ir_datasets       TREC's form, JSON lines, and tabs in the order query, document, relevance, iteration
 *   MTEB              Parquet or JSON lines with the fields query-id, corpus-id and score
 *
 * Only a line of known names is a header. A line that cannot be read is a `CommandFailure` with its number: a judgement
 * that is left out would change the result unnoticed.
 */
import { inputError } from '../failure.ts';
import { formatOf } from '../import/sources/row-file.ts';
import { identifierText, isRawJson } from '../json.ts';
import { readLines } from '../jsonl.ts';
import { objectsIn } from './eval-files.ts';

/** Query id -> document id -> grade. A grade of 0 or below means that the document was judged not relevant. */
export type Judgements = ReadonlyMap<string, ReadonlyMap<string, number>>;

type Part = 'query' | 'document' | 'grade';
type Columns = Readonly<Record<Part, number>>;

/** Names of columns, without case, hyphens and underscores. */
const names: Readonly<Record<Part, readonly string[]>> = {
  query: ['queryid', 'qid', 'query', 'topic', 'topicid'],
  document: ['corpusid', 'docid', 'docno', 'documentid', 'doc', 'document', 'did', 'pid', 'passageid'],
  grade: ['score', 'relevance', 'rel', 'grade', 'label', 'judgement', 'judgment', 'qrel'],
};
const parts: readonly Part[] = ['query', 'document', 'grade'];

/** BEIR and ir_datasets, which may have the iteration behind them. */
const plainOrder: Columns = { query: 0, document: 1, grade: 2 };
const trecOrder: Columns = { query: 0, document: 2, grade: 3 };

const number = /^[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$/;
const iteration = /^Q?\d+(?:\.\d+)?$/i;

export async function readJudgements(files: readonly string[]): Promise<Judgements> {
  const judgements = new Map<string, Map<string, number>>();
  for (const file of files) {
    const format = formatOf(file);
    const read = format === 'jsonl' || format === 'parquet' ? fromObjects(file) : fromLines(file);
    for await (const { where, ...cells } of read) {
      const { query, document, grade } = checked(where, cells);
      const grades = judgements.get(query) ?? new Map<string, number>();
      const before = grades.get(document);
      if (before !== undefined && before !== grade)
        throw inputError(
          `${where}: document ${document} has the grade ${grade} for query ${query}, and ${before} in an earlier line`,
        );
      judgements.set(query, grades.set(document, grade));
    }
  }
  return judgements;
}

type Cells = Readonly<Record<Part, string | undefined>>;
type PlacedCells = Cells & { readonly where: string };

function checked(where: string, { query, document, grade }: Cells) {
  if (query === undefined || query === '') throw inputError(`${where}: no id of a query`);
  if (document === undefined || document === '') throw inputError(`${where}: no id of a document`);
  if (grade === undefined || !number.test(grade) || !Number.isFinite(Number(grade)))
    throw inputError(
      `${where}: the grade is not a number (a header has the names query-id, corpus-id and score)`,
    );
  return { query, document, grade: Number(grade) };
}

async function* fromObjects(file: string): AsyncGenerator<PlacedCells> {
  for await (const { where, object } of objectsIn(file)) {
    const fields = Object.entries(object);
    const [query, document, grade] = parts.map((part) => fields.find(([name]) => isName(part, name))?.[1]);
    yield {
      where,
      query: identifierText(query),
      document: identifierText(document),
      grade: isRawJson(grade) ? grade.rawJSON : typeof grade === 'boolean' ? undefined : String(grade),
    };
  }
}

async function* fromLines(file: string): AsyncGenerator<PlacedCells> {
  const lines: { readonly where: string; readonly cells: readonly string[] }[] = [];
  for await (const { number: line, bytes } of readLines(file)) {
    const text = bytes?.toString('utf8') ?? '';
    lines.push({ where: `${file}:${line}`, cells: cellsOf(line === 1 ? text.replace(/^\uFEFF/, '') : text) });
  }
  const [first] = lines;
  if (first === undefined) return;
  const header = headerOf(first.cells);
  const rows = header === undefined ? lines : lines.slice(1);
  const width = first.cells.length;
  if (header === undefined && width !== 3 && width !== 4)
    throw inputError(`${first.where}: ${width} columns instead of 3 or 4`);
  const { query, document, grade } = header ?? columnsOf(rows.map(({ cells }) => cells));
  for (const { where, cells } of rows) {
    if (cells.length !== width)
      throw inputError(`${where}: ${cells.length} columns instead of ${width}, as in the first line`);
    yield { where, query: cells[query], document: cells[document], grade: cells[grade] };
  }
}

/** Tabs separate columns, because identifiers may hold spaces. In a line without enough tabs, white space does. */
function cellsOf(line: string): readonly string[] {
  const cells = line
    .trimEnd()
    .split('\t')
    .map((cell) => cell.trim());
  return cells.length > 2 ? cells : line.trim().split(/\s+/);
}

function headerOf(cells: readonly string[]): Columns | undefined {
  const [query = -1, document = -1, grade = -1] = parts.map((part) =>
    cells.findIndex((cell) => isName(part, cell)),
  );
  return query === -1 || document === -1 || grade === -1 ? undefined : { query, document, grade };
}

function isName(part: Part, name: string): boolean {
  return names[part].includes(name.toLowerCase().replace(/[-_ ]/g, ''));
}

/**
 * TREC has the iteration, a number like 0 or Q0, in the second of four columns, ir_datasets in the last. The order that
 * reads more lines is taken. If all columns are numbers, the one with more distinct values has the documents.
 */
function columnsOf(rows: readonly (readonly string[])[]): Columns {
  const four = rows.filter((cells) => cells.length === 4);
  if (four.length === 0) return plainOrder;
  const fits = (iterationAt: number, gradeAt: number): number =>
    four.filter((cells) => iteration.test(cells[iterationAt]!) && number.test(cells[gradeAt]!)).length;
  const distinct = (column: number): number => new Set(four.map((cells) => cells[column])).size;
  const preference = fits(1, 3) - fits(3, 2) || distinct(2) - distinct(1);
  return preference >= 0 ? trecOrder : plainOrder;
}
