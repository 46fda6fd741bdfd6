/** `maxsimd usage`: usage, limits and what remains this UTC month, as the service counts them. */
import { ApiClient } from './api/client.ts';
import type { Endpoint } from './api/endpoint.ts';
import { table, type CommandResult } from './output.ts';

export async function showUsage(endpoint: Endpoint): Promise<CommandResult> {
  const client = new ApiClient(endpoint, { policy: { unavailableMsMax: 10_000, brokenAttemptsMax: 1 } });
  const summary = await client.usage();
  const { usage, limits, remaining } = summary;
  const cell = (value: number | string | undefined): string => (value === undefined ? '' : String(value));
  const rows = [
    ['input tokens', usage.input_tokens, limits.input_tokens, remaining.input_tokens],
    ['stored documents', usage.documents, limits.documents, remaining.documents],
    ['requests', usage.requests],
    ['upserted documents', usage.document_upserts],
    ['searches', usage.searches],
    ['scores', usage.scores],
    ['requests a minute', undefined, limits.requests_per_minute],
    ['requests at once', undefined, limits.max_concurrent_requests],
  ].map((row) => Array.from({ length: 4 }, (_, column) => cell(row[column])));
  const numeric = ['used', 'limit', 'remaining'];
  return {
    document: summary,
    text: `${table(['', ...numeric], rows, numeric)}\nfrom ${summary.period_start} until ${summary.period_end}`,
  };
}
