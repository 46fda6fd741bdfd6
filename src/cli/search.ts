/** `maxsimd search`: one query, its results as a table or as the API's own answer. */
import { styleText } from 'node:util';
import type { Result, Search } from '../../clients/typescript/src/types.ts';
import { clientOf, requireIndex, type Endpoint } from './client.ts';
import { CommandFailure } from './failure.ts';
import { isObject, parseGivenJson, RepeatedNameError } from './json.ts';
import { codePointsOf } from '../input/words.ts';
import { oneLine, printable, table, type CommandResult } from './output.ts';

const metadataWidthMax = 60;

export async function search(endpoint: Endpoint, indexName: string, body: Search): Promise<CommandResult> {
  const client = clientOf(endpoint, 10_000);
  const index = await requireIndex(client, indexName);
  let latencyMs = 0;
  const onAnswer = (answer: { readonly latencyMs: number }): void => void ({ latencyMs } = answer);
  const answer = await client.search(index.id, body, { onAnswer });
  const first = (body.offset ?? 0) + 1;
  const rows = answer.results.map((result, position) => [
    String(first + position),
    result.score.toFixed(4),
    result.doc_id,
    String(result.chunk_index),
    result.chunk_id,
    shorten(JSON.stringify(result.metadata)),
  ]);
  const numeric = ['rank', 'score', 'chunk'];
  const results = table(['rank', 'score', 'doc_id', 'chunk', 'chunk_id', 'metadata'], rows, numeric);
  const hint = answer.hint === undefined ? '' : `\n${answer.hint}`;
  const passages = body.passage === undefined ? '' : passagesText(answer.results, first);
  const components = body.return_components === true ? componentsText(answer.results, first) : '';
  return {
    document: answer,
    text: `${results}\n${answer.results.length} results in ${latencyMs.toFixed(1)} ms${hint}${passages}${components}`,
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

/** A passage may have several lines. On a terminal the words that matched have a colour. */
function passagesText(results: readonly Result[], first: number): string {
  const parts = results.map(({ doc_id: docId, passage }, at) => {
    const title = styleText('bold', oneLine(`${first + at}  ${docId}`));
    return `${title}\n${passage ? markedText(passage) : '(no passage)'}`;
  });
  return parts.length === 0 ? '' : `\n\n${parts.join('\n\n')}`;
}

function markedText({ text, start, highlights = [] }: NonNullable<Result['passage']>): string {
  const points = codePointsOf(text);
  let shown = '';
  let at = 0;
  for (const word of highlights) {
    const [from, to] = [points.unitOf(word.start - start), points.unitOf(word.end - start)];
    shown += printable(text.slice(at, from)) + styleText('yellow', printable(text.slice(from, to)));
    at = to;
  }
  return (shown + printable(text.slice(at))).trim();
}

/** Components are diagnostics whose shape may change, so they are shown as they came, one line for each result. */
function componentsText(results: readonly Result[], first: number): string {
  const lines = results.map(({ components }, at) => `${first + at}  ${JSON.stringify(components ?? null)}`);
  return `\n\ncomponents\n${lines.join('\n')}`;
}
