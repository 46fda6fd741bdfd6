/** Command line of the benchmark of hostile requests. */
import { parseArgs } from 'node:util';
import { names } from '../options.ts';
import { writeJson } from '../write-json.ts';
import { attacks } from './attacks.ts';
import { renderHostile, runHostileBench } from './bench.ts';

export const hostileUsage = 'hostile [--attacks NAME,...] [--against CHECKOUT] [--json FILE]';

export async function hostileCommand(
  args: readonly string[],
  command: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      attacks: { type: 'string', default: '' },
      against: { type: 'string' },
      json: { type: 'string' },
    },
  });
  const known = attacks.map(({ name }) => name);
  const chosen = names(values.attacks, known, 'attacks');
  const report = await runHostileBench({
    attacks: chosen.length === 0 ? known : chosen,
    against: values.against,
    environment,
    command,
    onProgress: (line) => process.stderr.write(`${line}\n`),
  });
  writeJson(values.json, report);
  process.stdout.write(renderHostile(report));
}
