/** Command line of the search benchmark. */
import path from 'node:path';
import { parseArgs } from 'node:util';
import { integer, names } from '../options.ts';
import { writeJson } from '../write-json.ts';
import { root } from '../environment.ts';
import { runSearchBench } from './bench.ts';
import { parts } from './engine-rows.ts';
import { peerNames } from './peer-rows.ts';
import { renderTable } from './report.ts';

export const searchUsage =
  'search [--chunks 10000] [--embeddings DIR] [--mean-rows 64] [--queries 200] [--searches 500] ' +
  `[--budget-ms 10000] [--parts ${parts.join(',')}] [--peers ${peerNames.join(',')}] [--threads 0] [--seed 1] [--cache DIR] [--json FILE]`;

export async function searchCommand(args: readonly string[], command: string): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      chunks: { type: 'string', default: '10000' },
      embeddings: { type: 'string' },
      'mean-rows': { type: 'string', default: '64' },
      queries: { type: 'string', default: '200' },
      searches: { type: 'string', default: '500' },
      'budget-ms': { type: 'string', default: '10000' },
      parts: { type: 'string', default: parts.join(',') },
      peers: { type: 'string', default: '' },
      threads: { type: 'string', default: '0' },
      seed: { type: 'string', default: '1' },
      cache: { type: 'string', default: path.join(root, 'build', 'bench-search') },
      json: { type: 'string' },
    },
  });
  const report = await runSearchBench({
    chunks: integer(values.chunks, 'chunks'),
    embeddings: values.embeddings,
    meanRows: integer(values['mean-rows'], 'mean-rows'),
    queries: integer(values.queries, 'queries'),
    searches: integer(values.searches, 'searches'),
    budgetMs: integer(values['budget-ms'], 'budget-ms'),
    parts: new Set(names(values.parts, parts, 'parts')),
    peers: names(values.peers, peerNames, 'peers'),
    threads: integer(values.threads, 'threads', 0),
    seed: integer(values.seed, 'seed', 0),
    cache: values.cache,
    command,
    onProgress: (line) => process.stderr.write(`${line}\n`),
  });
  writeJson(values.json, report);
  process.stdout.write(renderTable(report));
}
