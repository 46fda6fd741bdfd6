/** Command line of the search benchmark. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
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
    chunks: integer(values.chunks, 'chunks', 1),
    embeddings: values.embeddings,
    meanRows: integer(values['mean-rows'], 'mean-rows', 1),
    queries: integer(values.queries, 'queries', 1),
    searches: integer(values.searches, 'searches', 1),
    budgetMs: integer(values['budget-ms'], 'budget-ms', 1),
    parts: new Set(namesOf(values.parts, parts, 'parts')),
    peers: namesOf(values.peers, peerNames, 'peers'),
    threads: integer(values.threads, 'threads', 0),
    seed: integer(values.seed, 'seed', 0),
    cache: values.cache,
    command,
    onProgress: (line) => process.stderr.write(`${line}\n`),
  });
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`);
  process.stdout.write(renderTable(report));
}

/** Names given with commas between; none when the text is empty. */
function namesOf<Name extends string>(text: string, known: readonly Name[], option: string): readonly Name[] {
  return text
    .split(',')
    .filter((name) => name !== '')
    .map((name) => {
      const found = known.find((one) => one === name);
      if (found === undefined) throw new Error(`--${option}: no ${name}; there are ${known.join(', ')}`);
      return found;
    });
}

function integer(text: string, option: string, least: number): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < least) {
    throw new Error(`--${option} takes integers from ${least}, not "${text}"`);
  }
  return value;
}
