/**
 * Generated parts of the documents. Run directly it rewrites them between their markers
 * (`<!-- table:NAME -->` ... `<!-- /table -->`); a test compares them.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describeConfig } from '../src/app/config.ts';
import { errorTable } from '../src/errors.ts';
import { createRequestObserver } from '../src/http/observation.ts';
import { createMetrics, type RegisteredMetric } from '../src/metrics.ts';
import { registerServiceMetrics } from '../src/app/telemetry/service-metrics.ts';

const root = path.resolve(import.meta.dirname, '..');
const decisions = path.join(import.meta.dirname, 'decisions');

/** Headers whose leading comment is the field table of a file. */
const formatHeaders: Readonly<Record<string, string>> = {
  'Segment: `<segment id>.seg`': 'native/store/format.h',
  'Codes: `<segment id>.seg.codes`': 'native/codes/codes.h',
  'Codebook: `codebook-<hash>`': 'native/codes/codebook_file.h',
  'Postings: `<segment id>.seg.postings`': 'native/store/postings.h',
};

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

  formats: () =>
    Object.entries(formatHeaders)
      .map(([title, header]) => `## ${title}\n\n\`\`\`\n${leadingComment(header)}\n\`\`\`\n`)
      .join('\n'),
  decisions: () => table(['Decision', 'Status'], readDecisions()),
};

function leadingComment(header: string): string {
  const lines = readFileSync(path.join(root, header), 'utf8').split('\n');
  const end = lines.findIndex((line) => !line.startsWith('//'));
  return lines
    .slice(0, end)
    .map((line) => line.replace(/^\/\/ ?/, ''))
    .join('\n');
}

function readDecisions(): readonly (readonly string[])[] {
  return globSync('[0-9]*.md', { cwd: decisions })
    .toSorted()
    .map((file) => {
      const text = readFileSync(path.join(decisions, file), 'utf8');
      const title = /^# (.+)$/m.exec(text)?.[1];
      const status = /^- Status: (.+)$/m.exec(text)?.[1];
      if (title === undefined || status === undefined) throw new Error(`${file} has no title or no status`);
      return [`[${title}](${file})`, status];
    });
}

/** Registers what a server registers; nothing is read before a scrape, so nothing need be there. */
function describeMetrics(): readonly RegisteredMetric[] {
  const metrics = createMetrics();
  const absent = undefined as never;
  createRequestObserver(absent, metrics);
  registerServiceMetrics(metrics, { service: absent, catalog: absent, engine: absent, encoders: absent });
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

if (import.meta.main) {
  for (const file of globSync('docs/**/*.md', { cwd: root }).map((name) => path.join(root, name))) {
    const text = readFileSync(file, 'utf8');
    const written = withTables(text);
    if (written !== text) writeFileSync(file, written);
  }
}
