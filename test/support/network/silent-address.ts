/** An address that takes no connection and refuses none, like one behind a firewall that drops packets. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';

/** A process that listens and is stopped. The kernel takes connections until its queue is full, and then no more. */
const program = `
  const server = require('node:net').createServer();
  server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
    require('node:fs').writeSync(1, server.address().port + '\\n');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  });`;

export async function openSilentAddress(): Promise<{ readonly url: string; close(): Promise<void> }> {
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [printed] = (await once(child.stdout, 'data')) as [Buffer];
  const port = Number(printed.toString());
  const queued = Array.from({ length: 8 }, () => connect(port, '127.0.0.1').on('error', () => {}));
  await Promise.all(queued.slice(0, 2).map((socket) => once(socket, 'connect')));
  return {
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      for (const socket of queued) socket.destroy();
      child.kill('SIGKILL');
      await once(child, 'close');
    },
  };
}
