/** How a process ends: what its exit code is, and that it ends. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { expect, it } from 'vitest';

const source = path.resolve(import.meta.dirname, '../../src');

/** Runs a process that is ready to be ended; `act` makes it end, or `before` has. `closing` is what its `close` returns. */
async function ended(
  act: string,
  closing: string,
  before = '',
): Promise<{ code: number | null; printed: string }> {
  const script = `
    import { catchEndSignals } from ${JSON.stringify(path.join(source, 'process/end-signals.ts'))};
    import { onShutdown } from ${JSON.stringify(path.join(source, 'app/shutdown.ts'))};
    import { setTimeout as delay } from 'node:timers/promises';
    const onError = (error) => console.log('error', error.message);
    const asked = catchEndSignals();
    ${before}
    onShutdown({ asked, drainMs: 300, closeMs: 200, onError }, () => { console.log('closing'); return ${closing}; });
    setInterval(() => {}, 1000);
    ${act}`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let printed = '';
  child.stdout.on('data', (chunk) => (printed += String(chunk)));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, printed };
}

const signalTwice =
  "process.kill(process.pid, 'SIGTERM'); setTimeout(() => process.kill(process.pid, 'SIGINT'), 20);";

it('the first signal closes, once, and further ones change nothing', async () => {
  expect(await ended(signalTwice, 'delay(100)')).toEqual({ code: 0, printed: 'closing\n' });
});

it('a signal that came before the process was ready to be ended closes, too', async () => {
  const before = "process.kill(process.pid, 'SIGTERM'); await delay(50);";
  expect(await ended('', 'delay(10)', before)).toEqual({ code: 0, printed: 'closing\n' });
});

it('a close that does not end is cut short', async () => {
  expect(await ended(signalTwice, 'new Promise(() => {})')).toEqual({ code: 1, printed: 'closing\n' });
});

it('a close that fails is reported', async () => {
  const failing = "Promise.reject(new Error('no'))";
  expect(await ended(signalTwice, failing)).toEqual({ code: 1, printed: 'closing\nerror no\n' });
});

it.each([
  ['thrown', "setTimeout(() => { throw new Error('defect'); });"],
  ['rejected', "void Promise.reject(new Error('defect'));"],
])('a defect that is %s closes too, and is no success', async (_how, act) => {
  expect(await ended(act, 'delay(10)')).toEqual({ code: 1, printed: 'error defect\nclosing\n' });
});
