/** Command line of the encoder benchmark. */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { runEncoderBench } from './bench.ts';
import { mixShapes } from './mixes.ts';
import { renderTable } from './report.ts';

export const encoderUsage =
  'encoder [--texts 50] [--rounds 5] [--seed 1] [--mixes documents_mixed,...] [--beir DIR] [--device cpu|cuda:0] [--no-peers] [--python python3] [--json FILE]';

/** `environment` chooses the model, as it does for the server (`MAXSIMD_MODEL`, `MAXSIMD_MODELS_DIR`). */
export async function encoderCommand(
  args: readonly string[],
  command: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      texts: { type: 'string', default: '50' },
      rounds: { type: 'string', default: '5' },
      seed: { type: 'string', default: '1' },
      mixes: { type: 'string', default: '' },
      beir: { type: 'string' },
      device: { type: 'string', default: 'cpu' },
      python: { type: 'string' },
      'no-peers': { type: 'boolean', default: false },
      json: { type: 'string' },
    },
  });
  const report = await runEncoderBench({
    texts: positive(values.texts, 'texts'),
    rounds: positive(values.rounds, 'rounds'),
    seed: positive(values.seed, 'seed'),
    mixes: mixNames(values.mixes),
    beir: values.beir,
    peers: !values['no-peers'],
    python: values.python,
    ...deviceOf(values.device),
    environment,
    command,
    onProgress: (line) => process.stderr.write(`${line}\n`),
  });
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`);
  process.stdout.write(renderTable(report));
}

export function deviceOf(text: string): { readonly provider: 'cpu' | 'cuda'; readonly device: number } {
  if (text === 'cpu') return { provider: 'cpu', device: 0 };
  const index = /^cuda:(\d+)$/.exec(text)?.[1];
  if (index === undefined) throw new Error(`--device takes cpu or cuda:N, not "${text}"`);
  return { provider: 'cuda', device: Number(index) };
}

function mixNames(text: string): readonly string[] {
  const known = mixShapes.map(({ name }) => name);
  const names = text.split(',').filter((name) => name !== '');
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new Error(`--mixes: no mix ${unknown}; there are ${known.join(', ')}`);
  return names;
}

function positive(text: string, name: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1)
    throw new Error(`--${name} takes positive integers, not "${text}"`);
  return value;
}
