/** Command line of the benchmark of one search's stages. */
import { parseArgs } from 'node:util';
import { integer } from '../options.ts';
import { writeJson } from '../write-json.ts';
import { renderStages, runStagesBench } from './bench.ts';

export const stagesUsage =
  'stages [--beir DIR] [--documents 300] [--queries 100] [--rounds 6] [--warm-up 1000] [--against CHECKOUT] [--json FILE]';

export async function stagesCommand(
  args: readonly string[],
  command: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      beir: { type: 'string' },
      documents: { type: 'string', default: '300' },
      queries: { type: 'string', default: '100' },
      rounds: { type: 'string', default: '6' },
      'warm-up': { type: 'string', default: '1000' },
      against: { type: 'string' },
      json: { type: 'string' },
    },
  });
  const report = await runStagesBench({
    beir: values.beir,
    documents: integer(values.documents, 'documents'),
    queries: integer(values.queries, 'queries'),
    rounds: integer(values.rounds, 'rounds'),
    warmUp: integer(values['warm-up'], 'warm-up'),
    against: values.against,
    environment,
    command,
    onProgress: (line) => process.stderr.write(`${line}\n`),
  });
  writeJson(values.json, report);
  process.stdout.write(renderStages(report));
}
