/**
 * Generated parts of the documents. Run directly it rewrites them between their markers
 * (`<!-- table:NAME -->` ... `<!-- /table -->`); a test compares them.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describeConfig } from '../src/app/config.ts';
import { errorTable } from '../src/errors.ts';
import { describeMetrics } from '../src/app/telemetry/describe-metrics.ts';

const root = path.resolve(import.meta.dirname, '..');
const decisions = path.join(import.meta.dirname, 'decisions');

/** Headers whose leading comment is the field table of a file. */
const formatHeaders: Readonly<Record<string, string>> = {
  'Segment: `<segment id>.seg`': 'native/store/format.h',
  'Codes: `<segment id>.seg.codes`': 'native/codes/codes.h',
  'Codebook: `codebook-<hash>`': 'native/codes/codebook_file.h',
  'Postings: `<segment id>.seg.postings`': 'native/store/postings.h',
  'Column: `<segment id>.seg.columns-<hash>`': 'native/values/column_file.h',
};

/** Why each runtime dependency is there. */
const dependencyReasons: Readonly<Record<string, string>> = {
  '@aws-sdk/client-s3': 'the object store of several nodes',
  '@aws-sdk/lib-storage': 'uploads large objects in parts',
  '@fastify/swagger': 'the OpenAPI document',
  '@fastify/swagger-ui': 'the interactive page, served from the package',
  '@grpc/grpc-js': 'calls to encoders',
  '@grpc/proto-loader': 'reads the definition of these calls',
  '@huggingface/tokenizers': 'tokenizers other than that of BERT',
  '@modelcontextprotocol/sdk': 'tools for agents (`maxsimd mcp`)',
  '@opentelemetry/api': 'traces: contexts',
  '@opentelemetry/exporter-trace-otlp-http': 'traces: sends them to a collector',
  '@opentelemetry/resources': 'traces: names the service that sends them',
  '@opentelemetry/sdk-trace': 'traces: spans, sampling, batches',
  'better-sqlite3': 'the catalog and the usage ledger (SQLite)',
  'cli-progress': 'the progress bar of commands',
  commander: 'the command line',
  fastify: 'HTTP',
  'fastify-type-provider-zod': 'checks requests by schemas',
  'grpc-health-check': 'the health protocol of gRPC',
  hyparquet: 'import of Parquet',
  ioredis: 'the limits of several nodes',
  'lru-cache': 'bounded caches',
  'onnxruntime-node': 'runs models',
  'openapi-types': 'types of the OpenAPI document',
  pg: 'the catalog of several nodes',
  pino: 'the log',
  'prom-client': 'metrics',
  protobufjs: 'reads which files an ONNX graph needs',
  tar: 'writes and reads headers of archives',
  ulid: 'request ids',
  undici: 'connections of the command line, also through proxies',
  yaml: 'reads the cards of datasets',
  zod: 'schemas of configuration, requests and files',
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
  dependencies: describeDependencies,
  decisions: () => table(['Room', 'Decision'], readDecisions()),
};

interface LockedPackage {
  readonly license?: string;
  readonly dev?: boolean;
  readonly devOptional?: boolean;
}

/** With how many packages there are in all, by licence. */
function describeDependencies(): string {
  const read = (file: string) => JSON.parse(readFileSync(path.join(root, file), 'utf8')) as unknown;
  const { dependencies, optionalDependencies } = read('package.json') as Readonly<
    Record<'dependencies' | 'optionalDependencies', Readonly<Record<string, string>>>
  >;
  // Node itself, which a release does not bring.
  const runtimes = new Set(Object.keys(optionalDependencies).map((name) => `node_modules/${name}`));
  const { packages } = read('package-lock.json') as { packages: Readonly<Record<string, LockedPackage>> };
  const rows = Object.keys(dependencies).map((name) => {
    const reason = dependencyReasons[name];
    if (reason === undefined) throw new Error(`nothing says what ${name} is for`);
    return [`\`${name}\``, packages[`node_modules/${name}`]?.license ?? '', reason];
  });
  const runtime = Object.entries(packages).filter(
    ([name, { dev, devOptional }]) =>
      name !== '' && !runtimes.has(name) && dev !== true && devOptional !== true,
  );
  const byLicence = Map.groupBy(runtime, ([name, { license }]) => {
    if (license === undefined) throw new Error(`${name} has no licence`);
    return license;
  });
  const counts = [...byLicence]
    .toSorted(([one], [other]) => one.localeCompare(other))
    .map(([licence, found]) => `${licence} ${found.length}`);
  return `${table(['Package', 'Licence', 'For'], rows)}\n\nWith what they bring they are ${runtime.length} packages, by licence: ${counts.join(', ')}.`;
}

function leadingComment(header: string): string {
  const lines = readFileSync(path.join(root, header), 'utf8').split('\n');
  const end = lines.findIndex((line) => !line.startsWith('//'));
  return lines
    .slice(0, end)
    .map((line) => line.replace(/^\/\/ ?/, ''))
    .join('\n');
}

/** By room, then by number. */
function readDecisions(): readonly (readonly string[])[] {
  return globSync('[0-9]*.md', { cwd: decisions })
    .toSorted()
    .map((file) => {
      const text = readFileSync(path.join(decisions, file), 'utf8');
      const title = /^# (.+)$/m.exec(text)?.[1];
      const room = /^- Room: (.+)$/m.exec(text)?.[1];
      if (title === undefined || room === undefined) throw new Error(`${file} has no title or no room`);
      return { room, link: `[${title}](${file})` };
    })
    .toSorted((a, b) => a.room.localeCompare(b.room, 'en'))
    .map(({ room, link }) => [room, link]);
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
  for (const file of globSync(['README.md', 'docs/**/*.md'], { cwd: root }).map((name) =>
    path.join(root, name),
  )) {
    const text = readFileSync(file, 'utf8');
    const written = withTables(text);
    if (written !== text) writeFileSync(file, written);
  }
}
