/**
 * Hostile calls of the addon's methods with AddressSanitizer and UndefinedBehaviorSanitizer in the addon, for so many
 * seconds: `node test/native/calls/sanitized-calls.ts [SECONDS]`, an hour without. A process makes 5,000 calls, then another begins
 * with the next seed; `TEST_SEED` repeats a run. Exits with 1 on any finding, and names its seed.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import path from 'node:path';
import { announceRandom } from '../../support/running/random.ts';
import { buildSanitizedAddon } from '../native-build.ts';
import { temporaryDirectory } from '../sample.ts';

const callsPerProcess = 5_000;
const [seconds = '3600'] = process.argv.slice(2);

const compiler = process.env['CXX'] ?? 'c++';
if (execFileSync(compiler, ['--version'], { encoding: 'utf8' }).includes('clang')) {
  console.log('not run: the runtime of sanitizers is looked for where g++ has it, and the compiler is clang');
  process.exit();
}
const addon = buildSanitizedAddon();
// Node itself has no sanitizer, so the runtime of the addon's must be there before Node is. What V8 never frees is no leak of ours.
const runtime = execFileSync(compiler, ['-print-file-name=libasan.so'], { encoding: 'utf8' }).trim();
const env = { ...process.env, LD_PRELOAD: runtime, ASAN_OPTIONS: 'detect_leaks=0' };
const script = path.join(import.meta.dirname, 'hostile-process.ts');
const { seed: firstSeed } = announceRandom('hostile calls under sanitizers');
const end = performance.now() + Number(seconds) * 1000;

let seed = firstSeed;
do {
  using directory = temporaryDirectory();
  const args = [script, `${seed}`, `${callsPerProcess}`, directory.path, addon];
  const { status, signal } = spawnSync(process.execPath, args, {
    cwd: directory.path,
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (status !== 0) throw new Error(`hostile calls of seed ${seed} ended their process: ${signal ?? status}`);
  seed += 1;
} while (performance.now() < end);
console.log(`${(seed - firstSeed) * callsPerProcess} hostile calls, no finding`);
