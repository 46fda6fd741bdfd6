/** Who opens connections of the admin API and says nothing keeps no operator out. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { listen } from '../../support/http/sockets.ts';
import { openAdminStage, type AdminStage } from './admin-stage.ts';

let stage: AdminStage;
let port: number;
const opened: Socket[] = [];

beforeEach(async () => {
  stage = await openAdminStage();
  port = await listen(stage);
});
afterEach(async () => {
  for (const socket of opened.splice(0)) socket.destroy();
  await stage[Symbol.asyncDispose]();
});

/** A connection on which so much is sent. */
async function open(text = ''): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  opened.push(socket);
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  socket.write(text);
  return socket;
}

const call = (...more: string[]) =>
  [
    'GET /admin/v1/tenants HTTP/1.1',
    'host: x',
    `authorization: Bearer ${stage.operatorKey}`,
    ...more,
    '',
    '',
  ].join('\r\n');

async function statusOn(socket: Socket): Promise<string> {
  socket.write(call());
  const [bytes] = (await once(socket, 'data')) as [Buffer];
  return bytes.toString('latin1').slice(9, 12);
}

it('110 slow connections without a key make no call of an operator fail', async () => {
  const kept = await open();
  expect(await statusOn(kept)).toBe('200');
  const slow: Socket[] = [];
  for (let n = 0; n < 110; n += 1)
    slow.push(await open('GET /admin/v1/tenants HTTP/1.1\r\nhost: x\r\nx-slow: '));
  for (let calls = 0; calls < 30; calls += 1) expect(await statusOn(await open())).toBe('200');
  // Also on the connection that was there before.
  expect(await statusOn(kept)).toBe('200');
  await expect.poll(() => slow.filter(({ destroyed }) => destroyed).length).toBeGreaterThanOrEqual(61);
});

it('a header that does not come is waited for shortly', async () => {
  const socket = await open('GET /admin/v1/tenants HTTP/1.1\r\n');
  const [answer] = (await once(socket, 'data')) as [Buffer];
  expect(answer.toString('latin1')).toMatch(/^HTTP\/1\.1 408 /);
}, 50_000);

it('when operators have all connections of an address, a further one is closed', async () => {
  const operators = [];
  for (let n = 0; n < 50; n += 1) {
    const socket = await open();
    expect(await statusOn(socket)).toBe('200');
    operators.push(socket);
  }
  const further = await open();
  await once(further.resume(), 'close');
  expect(await statusOn(operators[0]!)).toBe('200');
});
