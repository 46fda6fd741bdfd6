/** Command line of the benchmark of a host around its model. */
import { parseArgs } from 'node:util';
import { integer, names, positiveNumber } from '../options.ts';
import { writeJson } from '../write-json.ts';
import { renderHost, runHostBench, workNames } from './bench.ts';

export const hostUsage =
  'host [--beir DIR] [--documents 300] [--seconds 10] [--work search,score,upsert] [--json FILE]';

export async function hostCommand(
  args: readonly string[],
  command: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      beir: { type: 'string' },
      documents: { type: 'string', default: '300' },
      seconds: { type: 'string', default: '10' },
      work: { type: 'string', default: workNames.join(',') },
      json: { type: 'string' },
    },
  });
  const report = await runHostBench({
    beir: values.beir,
    documents: integer(values.documents, 'documents'),
    works: names(values.work, workNames, 'work'),
    seconds: positiveNumber(values.seconds, 'seconds'),
    environment,
    command,
    onProgress: (line) => process.stderr.write(`${line}\n`),
  });
  writeJson(values.json, report);
  process.stdout.write(renderHost(report));
}
