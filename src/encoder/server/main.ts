/** Entry of an encoder process. It catches signals before it loads anything else. */
import { catchEndSignals } from '../../process/end-signals.ts';

const asked = catchEndSignals();
// Without this variable ONNX Runtime sends events about its models to its makers and stores them. It is read when the runtime loads.
process.env['ORT_DISABLE_TELEMETRY'] = '1';
const { runEncoder } = await import('./run.ts');
await runEncoder(process.argv.slice(2), asked);
