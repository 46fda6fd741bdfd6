/** The file of a unix socket outlives a killed process. No process can listen on it until it is removed. */
import { rm, stat } from 'node:fs/promises';
import { connect } from 'node:net';

/** Removes the socket of `unix:/path` when no process listens on it. Ignores other addresses and files. */
export async function removeStaleSocket(address: string): Promise<void> {
  if (!address.startsWith('unix:')) return;
  const file = address.slice('unix:'.length);
  const found = await stat(file).catch(() => undefined);
  if (found?.isSocket() === true && !(await isListening(file))) await rm(file, { force: true });
}

async function isListening(file: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(file);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
