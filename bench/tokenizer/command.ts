/** Command line of the tokenizer's benchmark. */
import { parseArgs } from 'node:util';
import { integer } from '../options.ts';
import { writeJson } from '../write-json.ts';
import { renderTokenizer, runTokenizerBench } from './bench.ts';

export const tokenizerUsage = 'tokenizer [--kib 100] [--processor-ms 20] [--json FILE]';

/** Every block of Unicode is made of whole rows of this length, or lies within one. */
const rowLength = 128;

export async function tokenizerCommand(args: readonly string[], command: string): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      kib: { type: 'string', default: '100' },
      'processor-ms': { type: 'string', default: '20' },
      json: { type: 'string' },
    },
  });
  const report = await runTokenizerBench({
    bytes: integer(values.kib, 'kib') * 1024,
    processorMs: integer(values['processor-ms'], 'processor-ms'),
    rowLength,
    command,
  });
  writeJson(values.json, report);
  process.stdout.write(renderTokenizer(report));
}
