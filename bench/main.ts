/** `npm run bench -- NAME [options]`: runs one benchmark, prints its table and writes JSON where asked. */
import { Command } from 'commander';
import { capacity } from './capacity/command.ts';
import { cluster } from './cluster/bench.ts';
import { cold } from './cold/bench.ts';
import { encoder } from './encoder/bench.ts';
import { firstRuns } from './gpu/first-runs.ts';
import { frontier } from './search/frontier/bench.ts';
import { gpu } from './gpu/bench.ts';
import { hostile } from './hostile/bench.ts';
import { kernel } from './kernel/bench.ts';
import { loop } from './loop/bench.ts';
import { memory } from './memory/bench.ts';
import { overload } from './overload/bench.ts';
import { retrieval } from './search/retrieval.ts';
import { search } from './search/bench.ts';
import { searchEmbed } from './search/embed.ts';
import { searchFit } from './search/synthetic/fit-statistics.ts';
import { searchResemblance } from './search/synthetic/resemblance.ts';
import { stages } from './service/bench.ts';

// ONNX Runtime, ours and that of the peers, sends nothing to its makers.
process.env['ORT_DISABLE_TELEMETRY'] = '1';

const program = new Command('npm run bench --').description(
  'Benchmarks; NAME --help lists the options of one.',
);
const scenarios = [
  kernel,
  capacity,
  cluster,
  cold,
  encoder,
  gpu,
  firstRuns,
  retrieval,
  search,
  frontier,
  stages,
  loop,
  hostile,
  overload,
  memory,
];
for (const command of [...scenarios, searchEmbed, searchFit, searchResemblance]) program.addCommand(command);
await program.parseAsync();
