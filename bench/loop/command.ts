/** Command line of the event-loop benchmark. */
import { parseArgs } from 'node:util';
import { integer } from '../options.ts';
import { writeJson } from '../write-json.ts';
import { renderLoop, runLoopBench } from './bench.ts';

export const loopUsage = 'loop [--documents 50] [--kib 100] [--seconds 15] [--json FILE]';

export async function loopCommand(
  args: readonly string[],
  command: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      documents: { type: 'string', default: '50' },
      kib: { type: 'string', default: '100' },
      seconds: { type: 'string', default: '15' },
      json: { type: 'string' },
    },
  });
  const report = await runLoopBench({
    documents: integer(values.documents, 'documents'),
    documentBytes: integer(values.kib, 'kib') * 1024,
    seconds: integer(values.seconds, 'seconds'),
    environment,
    command,
    onProgress: (line) => process.stderr.write(`${line}\n`),
  });
  writeJson(values.json, report);
  process.stdout.write(renderLoop(report));
}
