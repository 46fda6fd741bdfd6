/** `npm run bench -- NAME [options]`: runs one benchmark, prints its table and writes JSON where asked. */
import { capacityCommand, capacityUsage } from './capacity/command.ts';
import { encoderCommand, encoderUsage } from './encoder/command.ts';
import { gpuCommand, gpuUsage } from './gpu/command.ts';
import { hostCommand, hostUsage } from './host/command.ts';
import { hostileCommand, hostileUsage } from './hostile/command.ts';
import { kernelCommand, kernelUsage } from './kernel/command.ts';
import { loopCommand, loopUsage } from './loop/command.ts';
import { searchCommand, searchUsage } from './search/command.ts';
import { embedCommand, embedUsage } from './search/embed.ts';
import { fitCommand, fitUsage } from './search/fit-statistics.ts';
import { resemblanceCommand, resemblanceUsage } from './search/resemblance.ts';
import { stagesCommand, stagesUsage } from './stages/command.ts';
import { storeCommand, storeUsage } from './store/command.ts';
import { tokenizerCommand, tokenizerUsage } from './tokenizer/command.ts';

type Command = (args: readonly string[], command: string) => void | Promise<void>;

const commands: Readonly<Record<string, Command>> = {
  kernel: kernelCommand,
  capacity: (args, command) => capacityCommand(args, command, process.env),
  encoder: (args, command) => encoderCommand(args, command, process.env),
  gpu: (args, command) => gpuCommand(args, command, process.env),
  host: (args, command) => hostCommand(args, command, process.env),
  hostile: (args, command) => hostileCommand(args, command, process.env),
  search: searchCommand,
  'search-embed': (args) => embedCommand(args, process.env),
  'search-fit': fitCommand,
  'search-resemblance': resemblanceCommand,
  loop: (args, command) => loopCommand(args, command, process.env),
  stages: (args, command) => stagesCommand(args, command, process.env),
  store: storeCommand,
  tokenizer: tokenizerCommand,
};

// ONNX Runtime, ours and that of the peers, sends nothing to its makers.
process.env['ORT_DISABLE_TELEMETRY'] = '1';

const [name = '', ...rest] = process.argv.slice(2);
const run = commands[name];
if (run === undefined) {
  const usages = [
    kernelUsage,
    capacityUsage,
    encoderUsage,
    gpuUsage,
    hostUsage,
    searchUsage,
    embedUsage,
    fitUsage,
    resemblanceUsage,
    stagesUsage,
    loopUsage,
    hostileUsage,
    storeUsage,
    tokenizerUsage,
  ];
  process.stderr.write(
    `usage: npm run bench -- NAME [options]\n${usages.map((usage) => `  ${usage}\n`).join('')}`,
  );
  process.exitCode = 2;
} else {
  await run(rest, `npm run bench -- ${process.argv.slice(2).join(' ')}`);
}
