/**
 * Connections that say nothing or little: others are answered as before. Times are medians of stretches with the
 * connections and without them, in turn, so that a busy machine comes over both.
 */
import { connect, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';

import { rounds } from '../../rounds.ts';
import { readMetric } from '../../support/running/server.ts';
import { useStage } from '../../support/running/stage.ts';
import { find, makeIndex, put } from '../../support/running/requests.ts';

const stage = useStage({ metrics: true, sharedEncoder: true });
/** Sent by slow connections, a character at a time. */
const slowText = 'POST /v1/score HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nx: '.padEnd(
  2000,
  'x',
);
const searches = rounds({ short: 60, nightly: 1000 });
const timesMax = 2;
/** The error of a median on a machine that does other work too. */
const noiseMs = 5;

const sockets = new Set<Socket>();
let dripping: NodeJS.Timeout | undefined;
afterEach(closeAll);

function closeAll(): void {
  clearInterval(dripping);
  for (const socket of sockets) socket.destroy();
  sockets.clear();
}

async function open(idle: number, slow: number): Promise<void> {
  const { hostname, port } = new URL(stage.server.url);
  const opened = Array.from({ length: idle + slow }, async () => {
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    sockets.add(socket);
    // The server ends those that take too long; new ones take their places.
    socket.on('error', () => undefined);
    await new Promise((resolve) => socket.once('connect', resolve));
    return socket;
  });
  const slowOnes = (await Promise.all(opened)).slice(idle);
  let at = 0;
  dripping = setInterval(() => {
    for (const socket of slowOnes) if (socket.writable) socket.write(slowText[at % slowText.length]!);
    at += 1;
  }, 200);
}

async function medianMs(indexId: string): Promise<number> {
  const times: number[] = [];
  for (let n = 0; n < searches; n += 1) {
    const startedAt = performance.now();
    await find(stage.client, indexId, { query: 'river' });
    times.push(performance.now() - startedAt);
  }
  return times.toSorted((a, b) => a - b)[Math.floor(searches / 2)]!;
}

test('2,000 idle and 200 slow ones leave others within twice their time', async () => {
  const { id } = await makeIndex(stage.client);
  await put(stage.client, id, [{ doc_id: 'a', text: 'river' }]);
  await medianMs(id);
  const alone: number[] = [];
  const beside: number[] = [];
  for (let turn = 0; turn < 3; turn += 1) {
    alone.push(await medianMs(id));
    await open(2000, 200);
    expect(await readMetric(stage.server, 'maxsimd_http_connections_refused_total')).toBe(0);
    beside.push(await medianMs(id));
    closeAll();
  }
  console.log(`median search, ms: alone ${alone.join(', ')}; beside 2,200 connections ${beside.join(', ')}`);
  expect(Math.min(...beside)).toBeLessThan(timesMax * Math.max(...alone) + noiseMs);
  // A new client finds room, too.
  expect((await stage.client.usage()).status).toBe(200);
});
