/** `npm run bench -- NAME [options]`: runs one benchmark, prints its table and writes JSON where asked. */
import { program } from './program.ts';

// ONNX Runtime, ours and that of the peers, sends nothing to its makers.
process.env['ORT_DISABLE_TELEMETRY'] = '1';
await program.parseAsync();
