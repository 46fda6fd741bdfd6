/** Command line of the benchmark of one search's stages. */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { renderStages, runStagesBench } from './bench.ts';

export const stagesUsage =
  'stages [--beir DIR] [--documents 300] [--queries 100] [--rounds 6] [--against CHECKOUT] [--json FILE]';

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
      against: { type: 'string' },
      json: { type: 'string' },
    },
  });
  const report = await runStagesBench({
    beir: values.beir,
    documents: positive(values.documents, 'documents'),
    queries: positive(values.queries, 'queries'),
    rounds: positive(values.rounds, 'rounds'),
    against: values.against,
    environment,
    command,
    onProgress: (line) => process.stderr.write(`${line}\n`),
  });
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`);
  process.stdout.write(renderStages(report));
}

function positive(text: string, name: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1)
    throw new Error(`--${name} takes positive integers, not "${text}"`);
  return value;
}
