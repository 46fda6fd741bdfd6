/** Command line of the encoder benchmark. */
import { parseArgs } from 'node:util';
import { device, integer, names } from '../options.ts';
import { writeJson } from '../write-json.ts';
import { runEncoderBench } from './bench.ts';
import { mixShapes } from './mixes.ts';
import { renderTable } from './report.ts';

export const encoderUsage =
  'encoder [--texts 400: so many that a round lasts seconds] [--rounds 5] [--seed 1] [--mixes documents_mixed,...] [--beir DIR]\n' +
  '          [--device cpu|cuda:0] [--no-peers] [--export DIR] [--python python3] [--json FILE]';

/** `environment` chooses the model, as it does for the server (`MAXSIMD_MODEL`, `MAXSIMD_MODELS_DIR`). */
export async function encoderCommand(
  args: readonly string[],
  command: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      texts: { type: 'string', default: '400' },
      rounds: { type: 'string', default: '5' },
      seed: { type: 'string', default: '1' },
      mixes: { type: 'string', default: '' },
      beir: { type: 'string' },
      device: { type: 'string', default: 'cpu' },
      python: { type: 'string' },
      export: { type: 'string' },
      'no-peers': { type: 'boolean', default: false },
      json: { type: 'string' },
    },
  });
  const report = await runEncoderBench({
    texts: integer(values.texts, 'texts'),
    rounds: integer(values.rounds, 'rounds'),
    seed: integer(values.seed, 'seed'),
    mixes: names(
      values.mixes,
      mixShapes.map(({ name }) => name),
      'mixes',
    ),
    beir: values.beir,
    peers: !values['no-peers'],
    python: values.python,
    exportDirectory: values.export,
    ...device(values.device, 'device'),
    environment,
    command,
    onProgress: (line) => process.stderr.write(`${line}\n`),
  });
  writeJson(values.json, report);
  process.stdout.write(renderTable(report));
}
