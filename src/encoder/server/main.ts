/** Entry of an encoder process: catches what ends it before anything else is read. */
import { catchEndSignals } from '../../end-signals.ts';

const asked = catchEndSignals();
// ONNX Runtime sends events about its models to its makers and keeps a database of them, unless configured otherwise before it loads.
process.env['ORT_DISABLE_TELEMETRY'] = '1';
const { runEncoder } = await import('./run.ts');
await runEncoder(process.argv.slice(2), asked);
