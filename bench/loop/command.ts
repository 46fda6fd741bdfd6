/** Command line of the event-loop benchmark. */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { runLoopBench } from './bench.ts';

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
  const line = (name: string, delays: typeof report.idle): string =>
    `${name.padEnd(12)}${Object.values(delays)
      .map((ms) => ms.toFixed(1).padStart(16))
      .join('')}`;
  process.stdout.write(
    `${''.padEnd(12)}${Object.keys(report.idle)
      .map((name) => name.padStart(16))
      .join('')}\n${line('idle', report.idle)}\n${line('in flight', report.loaded)}\n`,
  );
}
