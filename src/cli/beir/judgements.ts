/** Queries and relevance judgements of a BEIR directory. */
import { CommandFailure } from '../failure.ts';
import { parseLine, readLines } from '../jsonl.ts';
import { beirFile, identifierOf } from './directory.ts';

export interface Query {
  readonly id: string;
  readonly text: string;
}

/** Query id -> document id -> grade; grades of 0 and below mean judged, not relevant. */
export type Judgements = ReadonlyMap<string, ReadonlyMap<string, number>>;

export async function readQueries(directory: string): Promise<readonly Query[]> {
  const file = beirFile(directory, 'queries');
  const queries: Query[] = [];
  const seen = new Set<string>();
  for await (const line of readLines(file)) {
    const where = `${file}:${line.number}`;
    const parsed = parseLine(line);
    if ('problem' in parsed) throw new CommandFailure('input_error', `${where}: ${parsed.problem}`);
    const id = identifierOf(parsed.object);
    const text = parsed.object['text'];
    if (id === undefined) throw new CommandFailure('input_error', `${where}: no _id or id`);
    if (typeof text !== 'string') throw new CommandFailure('input_error', `${where}: no text`);
    if (seen.has(id)) throw new CommandFailure('input_error', `${where}: query ${id} appears twice`);
    seen.add(id);
    queries.push({ id, text });
  }
  return queries;
}

/** Tab-separated query id, document id, grade; a first line whose grade is no integer is the header. */
export async function readJudgements(directory: string): Promise<Judgements> {
  const file = beirFile(directory, 'qrels');
  const judgements = new Map<string, Map<string, number>>();
  for await (const line of readLines(file)) {
    const where = `${file}:${line.number}`;
    const columns = (line.bytes?.toString('utf8') ?? '').replace(/\r$/, '').split('\t');
    const [queryId = '', docId = '', gradeText = ''] = columns;
    if (columns.length !== 3) {
      throw new CommandFailure('input_error', `${where}: ${columns.length} columns instead of 3`);
    }
    if (!/^-?\d+$/.test(gradeText.trim())) {
      if (line.number === 1) continue;
      throw new CommandFailure('input_error', `${where}: the grade is not an integer`);
    }
    const grades = judgements.get(queryId) ?? new Map<string, number>();
    grades.set(docId, Number(gradeText));
    judgements.set(queryId, grades);
  }
  return judgements;
}
