import { createServer, type AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { Connection } from './connection.ts';

it('an exchange fails when the connection ends before the answer', async () => {
  const server = createServer((socket) => socket.once('data', () => socket.destroy()));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const connection = new Connection(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  await expect(connection.exchange('POST / HTTP/1.1\r\n\r\n')).rejects.toThrow(/closed|ECONNRESET/);
  await expect(connection.exchange('POST / HTTP/1.1\r\n\r\n')).rejects.toThrow(/closed|ECONNRESET/);
});
