/** Connections of a real encoder, with a client behind a valve that holds the encoder's answers back. */
import { credentials } from '@grpc/grpc-js';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { createServer, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import {
  type AnswerItem,
  EncoderClient,
  type EncodeQueriesResponse,
} from '../../../src/encoder/protocol/wire.ts';
import { EncoderProbe } from '../../../src/encoder/supervision/encoder-probe.ts';
import { encodersOfTest } from '../../support/encoder/encoders.ts';
import { eventually, hangMs } from '../../support/running/eventually.ts';

const query = { model: { name: 'colbert-tiny', version: '1' }, tenantId: 't', text: 'the late interaction' };

/** Node's HTTP/2 does not read while a write waits. So two ends that write at the same time would wait for each other for ever. */
it('reads on while nobody reads its answers', async () => {
  const { supervisor } = await encodersOfTest();
  const encoder = supervisor.addresses[0]!;
  const valve = await openValve(encoder);
  // The window is so large that the socket is full first.
  const client = new EncoderClient(valve.address, credentials.createInsecure(), {
    'grpc-node.flow_control_window': 16 << 20,
  });
  const stream = client.encodeQueries();
  const probe = new EncoderProbe(encoder);
  onTestFinished(() => {
    probe.close();
    stream.cancel();
    client.close();
  });
  stream.on('error', () => undefined);
  const answers: AnswerItem[] = [];
  stream.on('data', ({ items }: EncodeQueriesResponse) => answers.push(...items));
  stream.write({ items: [{ number: 1 }] });
  await eventually(() => answers.length === 1);
  const before = (await probe.statistics(hangMs))!.batches;
  valve.close();
  // Four bytes each, so that all fit the window of this direction, whose answers fill the socket of the other.
  const emptyItems = Array.from({ length: 16 }, () => ({ number: 2 }));
  for (let message = 0; message < 700; message++) stream.write({ items: emptyItems });
  stream.write({ items: [{ number: 3, query, timeoutMs: hangMs }] });
  await eventually(async () => ((await probe.statistics(hangMs))?.batches ?? before) > before);
  valve.open();
  await eventually(() => answers.length === 1 + 700 * 16 + 1);
  expect(answers.filter(({ number, failure }) => number === 2 && failure)).toHaveLength(700 * 16);
  expect(answers.filter(({ number, reply }) => number === 3 && reply)).toHaveLength(1);
});

/** A connection to the encoder that lets requests through, and answers only while it is open. */
async function openValve(encoder: string) {
  const file = path.join(tmpdir(), `maxsimd-valve-${process.pid}.sock`);
  const upstream = new Socket({ readableHighWaterMark: 1 } as object);
  const server = createServer((client) => {
    upstream.connect(encoder.slice('unix:'.length));
    client.pipe(upstream);
    upstream.on('data', (chunk) => client.write(chunk));
    upstream.on('error', () => client.destroy());
    client.on('error', () => upstream.destroy());
    client.on('close', () => upstream.destroy());
  }).listen(file);
  await once(server, 'listening');
  onTestFinished(async () => {
    server.close();
    await rm(file, { force: true });
  });
  return { address: `unix:${file}`, close: () => upstream.pause(), open: () => upstream.resume() };
}
