/** `maxsimd usage`: usage, limits and the rest of this UTC month, as the service counts them. */
import { clientOf, type Endpoint } from './client.ts';
import { unlimitedAllowances } from '../service/limits/unlimited.ts';
import { limitsDocument, usageDayColumns, type DayRange } from './catalog/tenants.ts';
import { csv, table, type CommandResult } from './output.ts';

export async function showUsage(endpoint: Endpoint): Promise<CommandResult> {
  const summary = await clientOf(endpoint, 10_000).usage();
  const { usage, limits, remaining } = summary;
  const unlimited = limitsDocument(unlimitedAllowances);
  const allowance = (name: 'input_tokens' | 'documents') =>
    limits[name] === unlimited[name] ? ['unlimited', ''] : [limits[name], remaining[name]];
  const rows = [
    ['input tokens', usage.input_tokens, ...allowance('input_tokens')],
    ['stored documents', usage.documents, ...allowance('documents')],
    ['requests', usage.requests],
    ['upserted documents', usage.document_upserts],
    ['searches', usage.searches],
    ['scores', usage.scores],
    ['requests a minute', '', limits.requests_per_minute],
    ['requests at once', '', limits.max_concurrent_requests],
  ].map((row) => row.map(String));
  const numeric = ['used', 'limit', 'remaining'];
  return {
    document: summary,
    text: `${table(['', ...numeric], rows, numeric)}\nfrom ${summary.period_start} until ${summary.period_end}`,
  };
}

export async function usageDaysCsv(endpoint: Endpoint, range: Partial<DayRange>): Promise<CommandResult> {
  const data = await clientOf(endpoint, 10_000).usageDays(range);
  const rows = data.map((day) => usageDayColumns.map((column) => String(day[column])));
  return { document: { data }, text: csv(usageDayColumns, rows) };
}
