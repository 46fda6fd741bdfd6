/**
 * The README's generated tables. Run directly it rewrites them between their markers
 * (`<!-- table:NAME -->` ... `<!-- /table -->`); a test holds the README to them.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describeConfig } from '../src/config.ts';
import { errorTable } from '../src/errors.ts';
import { createRequestObserver } from '../src/http/observation.ts';
import { createMetrics, type RegisteredMetric } from '../src/metrics/metrics.ts';
import { registerServiceMetrics } from '../src/service-metrics.ts';

export const readmePath = path.resolve(import.meta.dirname, '../README.md');

const tables: Readonly<Record<string, () => string>> = {
  configuration: () =>
    table(
      ['Variable', 'Default', 'Meaning'],
      describeConfig().map((row) => [
        `\`${row.name}\``,
        row.default === '' ? '' : `\`${row.default}\``,
        row.description,
      ]),
    ),
  metrics: () =>
    table(
      ['Metric', 'Type', 'Labels', 'Meaning'],
      describeMetrics().map(({ name, type, labelNames = [], help }) => [
        `\`${name}\``,
        type,
        labelNames.map((label) => `\`${label}\``).join(', '),
        help,
      ]),
    ),
  errors: () =>
    table(
      ['HTTP', '`error.code`', 'Condition'],
      Object.entries(errorTable).map(([code, row]) => [String(row.httpStatus), `\`${code}\``, row.condition]),
    ),
};

/** Registers what a server registers; nothing is read before a scrape, so nothing need be there. */
function describeMetrics(): readonly RegisteredMetric[] {
  const metrics = createMetrics();
  const absent = undefined as never;
  createRequestObserver(absent, metrics);
  registerServiceMetrics(metrics, { service: absent, engine: absent, encoders: absent });
  return metrics.descriptions();
}

function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(header), line(header.map(() => '---')), ...rows.map(line)].join('\n');
}

/** The text with every generated table brought up to date; a marker without a table is an error. */
export function withTables(text: string): string {
  return text.replaceAll(/<!-- table:(\w+) -->\n[\s\S]*?<!-- \/table -->/g, (_match, name: string) => {
    const render = tables[name];
    if (render === undefined) throw new Error(`no table called ${name}`);
    return `<!-- table:${name} -->\n${render()}\n<!-- /table -->`;
  });
}

export const tableNames: readonly string[] = Object.keys(tables);

if (import.meta.main) writeFileSync(readmePath, withTables(readFileSync(readmePath, 'utf8')));
