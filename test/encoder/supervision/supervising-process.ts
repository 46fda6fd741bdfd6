/** A program of the supervisor's tests: supervises one encoder until it is killed. Arguments: model directory, name. */
import { superviseEncoders } from '../../../src/encoder/supervision/supervisor.ts';

const supervisor = await superviseEncoders({
  name: process.argv[3]!,
  processes: 1,
  modelDirectories: [process.argv[2]!],
  provider: 'cpu',
  threads: 1,
  onLog: () => undefined,
});
await supervisor.ready;
const [encoder] = supervisor.processIds();
const [address] = supervisor.addresses;
process.stdout.write(`${JSON.stringify({ encoder, address })}\n`);
