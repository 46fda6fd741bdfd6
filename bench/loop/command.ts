/** Command line of the event-loop benchmark. */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
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
    documents: Number(values.documents),
    documentBytes: Number(values.kib) * 1024,
    seconds: Number(values.seconds),
    environment,
    command,
    onProgress: (line) => process.stderr.write(`${line}\n`),
  });
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`);
  process.stdout.write(renderLoop(report));
}
