/** `maxsimd facets`: the most frequent values of metadata fields as a table, or as the API's own answer. */
import { clientOf, requireIndex, type Endpoint } from '../client.ts';
import { table, type CommandResult } from '../output.ts';
import { parseObject } from '../search.ts';

export interface FacetsCommand {
  readonly fields: readonly string[];
  readonly limit: number | undefined;
  /** JSON. */
  readonly filter: string | undefined;
  readonly where: string | undefined;
}

export async function countValues(
  endpoint: Endpoint,
  indexName: string,
  { fields, limit, filter, where }: FacetsCommand,
): Promise<CommandResult> {
  const body = {
    fields,
    ...(limit !== undefined && { limit }),
    ...(filter !== undefined && { filter: parseObject('--filter', filter) }),
    ...(where !== undefined && { where: parseObject('--where', where) }),
  };
  const client = clientOf(endpoint, 150_000);
  const { id } = await requireIndex(client, indexName);
  const answer = await client.facets(id, body);
  const rows = answer.facets.flatMap(({ field, values }) =>
    values.map(({ value, count }) => [field, JSON.stringify(value), String(count)]),
  );
  const distinct = answer.facets.map((facet) => `${facet.field}: ${facet.distinct} values`);
  return {
    document: answer,
    text: `${table(['field', 'value', 'documents'], rows, ['documents'])}\n${answer.documents} documents match; ${distinct.join(', ')}`,
  };
}
