/** `maxsimd search`: one query, its results as a table or as the API's own answer. */
import type { Result, Search } from '../../clients/typescript/src/types.ts';
import { clientOf, requireIndex, type Endpoint } from './client.ts';
import { CommandFailure } from './failure.ts';
import { isObject, parseGivenJson, RepeatedNameError } from './json.ts';
import { table, type CommandResult } from './output.ts';

const metadataWidthMax = 60;

export async function search(endpoint: Endpoint, indexName: string, body: Search): Promise<CommandResult> {
  const client = clientOf(endpoint, 10_000);
  const index = await requireIndex(client, indexName);
  let latencyMs = 0;
  const onAnswer = (answer: { readonly latencyMs: number }): void => void ({ latencyMs } = answer);
  const answer = await client.search(index.id, body, { onAnswer });
  const rows = answer.results.map((result, position) => [
    String(position + 1),
    result.score.toFixed(4),
    result.doc_id,
    String(result.chunk_index),
    result.chunk_id,
    shorten(JSON.stringify(result.metadata)),
  ]);
  const numeric = ['rank', 'score', 'chunk'];
  const results = table(['rank', 'score', 'doc_id', 'chunk', 'chunk_id', 'metadata'], rows, numeric);
  const hint = answer.hint === undefined ? '' : `\n${answer.hint}`;
  const components = body.return_components === true ? componentsText(answer.results) : '';
  return {
    document: answer,
    text: `${results}\n${answer.results.length} results in ${latencyMs.toFixed(1)} ms${hint}${components}`,
  };
}

/** A JSON object as given on the command line. */
export function parseObject(option: string, text: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = parseGivenJson(text);
  } catch (error) {
    const problem = error instanceof RepeatedNameError ? `: ${error.message}` : ' is not valid JSON';
    throw new CommandFailure('usage_error', `${option}${problem}`);
  }
  if (!isObject(value)) throw new CommandFailure('usage_error', `${option} must be a JSON object`);
  return value;
}

function shorten(text: string): string {
  return text.length <= metadataWidthMax ? text : `${text.slice(0, metadataWidthMax - 3)}...`;
}

/** Components are diagnostics whose shape may change, so they are shown as they came, one line for each result. */
function componentsText(results: readonly Result[]): string {
  const lines = results.map(({ components }, at) => `${at + 1}  ${JSON.stringify(components ?? null)}`);
  return `\n\ncomponents\n${lines.join('\n')}`;
}
