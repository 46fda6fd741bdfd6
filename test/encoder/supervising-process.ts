/** A program of the supervisor's tests: supervises one encoder until it is killed. Arguments: model directory. */
import { superviseEncoders } from '../../src/encoder/supervisor.ts';

const supervisor = await superviseEncoders({
  processes: 1,
  modelDirectories: [process.argv[2]!],
  provider: 'cpu',
  threads: 1,
  onLog: () => undefined,
});
await supervisor.ready;
process.stdout.write(`${JSON.stringify(supervisor.processIds())}\n`);
