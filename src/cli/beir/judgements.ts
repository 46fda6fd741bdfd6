/** Queries and relevance judgements of a BEIR directory. */
import { inputError } from '../failure.ts';
import { parseLine, readLines } from '../jsonl.ts';
import { beirFile, identifierOf } from './directory.ts';

export interface Query {
  readonly id: string;
  readonly text: string;
}

/** Query id -> document id -> grade. A grade of 0 or below means that the document was judged not relevant. */
export type Judgements = ReadonlyMap<string, ReadonlyMap<string, number>>;

export async function readQueries(directory: string): Promise<readonly Query[]> {
  const file = beirFile(directory, 'queries');
  const queries: Query[] = [];
  const seen = new Set<string>();
  for await (const line of readLines(file)) {
    const where = `${file}:${line.number}`;
    const parsed = parseLine(line);
    if ('problem' in parsed) throw inputError(`${where}: ${parsed.problem}`);
    const id = identifierOf(parsed.object);
    const text = parsed.object['text'];
    if (id === undefined) throw inputError(`${where}: no _id or id`);
    if (typeof text !== 'string') throw inputError(`${where}: no text`);
    if (seen.has(id)) throw inputError(`${where}: query ${id} appears twice`);
    seen.add(id);
    queries.push({ id, text });
  }
  return queries;
}

/** Each line has query id, document id and grade, separated by tabs. A first line without an integer grade is the header. */
export async function readJudgements(directory: string): Promise<Judgements> {
  const file = beirFile(directory, 'qrels');
  const judgements = new Map<string, Map<string, number>>();
  for await (const line of readLines(file)) {
    const where = `${file}:${line.number}`;
    const columns = (line.bytes?.toString('utf8') ?? '').replace(/\r$/, '').split('\t');
    const [queryId = '', docId = '', gradeText = ''] = columns;
    if (columns.length !== 3) throw inputError(`${where}: ${columns.length} columns instead of 3`);
    if (!/^-?\d+$/.test(gradeText.trim())) {
      if (line.number === 1) continue;
      throw inputError(`${where}: the grade is not an integer`);
    }
    const grades = judgements.get(queryId) ?? new Map<string, number>();
    grades.set(docId, Number(gradeText));
    judgements.set(queryId, grades);
  }
  return judgements;
}
