/** All benchmarks with their options. A test compares the documents with them. */
import { Command } from 'commander';
import { capacity } from './capacity/command.ts';
import { encoder } from './encoder/bench.ts';
import { firstRuns } from './gpu/first-runs.ts';
import { frontier } from './search/frontier/bench.ts';
import { gpu } from './gpu/bench.ts';
import { kernel } from './kernel/bench.ts';
import { measuring } from './search/measuring.ts';
import { retrieval } from './search/retrieval.ts';
import { search } from './search/bench.ts';
import { searchEmbed } from './search/embed.ts';
import { stages } from './service/bench.ts';
import { tenants } from './tenants/bench.ts';

export const program = new Command('npm run bench --').description(
  'Benchmarks; NAME --help lists the options of one.',
);
const scenarios = [
  kernel,
  capacity,
  encoder,
  gpu,
  firstRuns,
  retrieval,
  search,
  frontier,
  measuring,
  stages,
  tenants,
];
for (const command of [...scenarios, searchEmbed]) program.addCommand(command);
