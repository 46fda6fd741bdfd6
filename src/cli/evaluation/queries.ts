/** The queries of an evaluation. */
import { inputError } from '../failure.ts';
import { identifierText } from '../json.ts';
import { objectsIn } from './eval-files.ts';

export interface Query {
  readonly id: string;
  readonly text: string;
}

const idNames = ['query_id', 'query-id', 'qid', '_id', 'id', 'doc_id'];

export async function readQueries(files: readonly string[]): Promise<readonly Query[]> {
  const queries: Query[] = [];
  const seen = new Set<string>();
  for (const file of files) {
    for await (const { where, object } of objectsIn(file)) {
      const name = idNames.find((candidate) => (object[candidate] ?? undefined) !== undefined);
      const id = name === undefined ? undefined : identifierText(object[name]);
      if (id === undefined) throw inputError(`${where}: no _id, id or query_id`);
      const text = object['text'];
      if (typeof text !== 'string') throw inputError(`${where}: no text`);
      if (seen.has(id)) throw inputError(`${where}: query ${id} appears twice`);
      seen.add(id);
      queries.push({ id, text });
    }
  }
  return queries;
}
