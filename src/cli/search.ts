/** `maxsimd search`: one query, its results as a table or as the API's own answer. */
import { ApiClient, type SearchQuery } from './api/client.ts';
import type { Endpoint } from './api/endpoint.ts';
import { CommandFailure } from './failure.ts';
import { isObject, parseJson } from './json.ts';
import { table, type CommandResult } from './output.ts';

export interface SearchCommand {
  readonly endpoint: Endpoint;
  readonly indexName: string;
  readonly query: string;
  readonly topK: number | undefined;
  readonly candidateK: number | undefined;
  readonly filter: Readonly<Record<string, unknown>> | undefined;
  readonly components: boolean;
  readonly retryMs: number;
}

const metadataWidthMax = 60;

export async function search(command: SearchCommand): Promise<CommandResult> {
  const client = new ApiClient(command.endpoint, {
    policy: { unavailableMsMax: command.retryMs, brokenAttemptsMax: 1 },
  });
  const index = await client.requireIndex(command.indexName);
  const query: SearchQuery = {
    query: command.query,
    ...(command.topK === undefined ? {} : { top_k: command.topK }),
    ...(command.candidateK === undefined ? {} : { candidate_k: command.candidateK }),
    ...(command.filter === undefined ? {} : { filter: command.filter }),
    ...(command.components ? { return_components: true } : {}),
  };
  const answer = await client.search(index.id, query);
  const rows = answer.results.map((result, position) => [
    String(position + 1),
    result.score.toFixed(4),
    result.doc_id,
    String(result.chunk_index),
    result.chunk_id,
    shorten(JSON.stringify(result.metadata)),
  ]);
  const results = table(['rank', 'score', 'doc_id', 'chunk', 'chunk_id', 'metadata'], rows, [
    'rank',
    'score',
    'chunk',
  ]);
  const components = command.components ? componentsText(answer.body) : '';
  return {
    document: isObject(answer.body) ? answer.body : {},
    text: `${results}\n${answer.results.length} results in ${answer.latencyMs.toFixed(1)} ms${components}`,
  };
}

/** The filter as given on the command line. */
export function parseFilter(text: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    throw new CommandFailure('usage_error', '--filter is not valid JSON');
  }
  if (!isObject(value)) throw new CommandFailure('usage_error', '--filter must be a JSON object');
  return value;
}

function shorten(text: string): string {
  return text.length <= metadataWidthMax ? text : `${text.slice(0, metadataWidthMax - 3)}...`;
}

/** Components are diagnostics whose shape may grow: shown as they came, one line a result. */
function componentsText(body: unknown): string {
  const results = isObject(body) && Array.isArray(body['results']) ? body['results'] : [];
  const lines = results.map((result: unknown, position) =>
    isObject(result) ? `${position + 1}  ${JSON.stringify(result['components'] ?? null)}` : '',
  );
  return `\n\ncomponents\n${lines.join('\n')}`;
}
