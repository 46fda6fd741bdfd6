/** Encoders behind one name: the pool follows the addresses that a lookup of a test gives it. Encoders are real processes. */
import { expect, it, onTestFinished } from 'vitest';
import { dnsNameOf, type HostAddress, systemLookUp } from '../../../src/encoder/client/dns-name.ts';
import type { EndpointEvent } from '../../../src/encoder/client/endpoint.ts';
import { createEncoderPool, type EncoderPoolOptions } from '../../../src/encoder/client/pool.ts';
import type { EncoderPool } from '../../../src/encoder/protocol/contract.ts';
import { ServiceError } from '../../../src/errors.ts';
import { eventually } from '../../support/running/eventually.ts';
import { callOptions, encodeAll } from '../../support/encoder/encoders.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { makeCertificate } from '../../support/network/tls.ts';
import { startTcpEncoder, type TcpEncoder } from '../../support/encoder/tcp-encoder.ts';

const far = '127.0.0.3';

/** A pool that finds its encoders at the addresses in `hosts`, which a test changes. */
function poolOf(port: number, hosts: string[], options: Partial<EncoderPoolOptions> = {}) {
  const events: EndpointEvent[] = [];
  const pool = createEncoderPool({
    addresses: [`dns:///encoders:${port}`],
    lookUp: (host) =>
      host === 'encoders'
        ? Promise.resolve(hosts.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })))
        : Promise.reject(new Error(`${host} is asked for`)),
    lookUpIntervalMs: 20,
    onEvent: (event) => events.push(event),
    ...options,
  });
  onTestFinished(async () => pool.close());
  return { pool, events };
}

async function twoEncoders(): Promise<readonly [TcpEncoder, TcpEncoder]> {
  const first = await startTcpEncoder('127.0.0.1');
  return [first, await startTcpEncoder('127.0.0.2', first.port)];
}

async function served(pool: EncoderPool): Promise<readonly string[]> {
  return (await pool.statistics()).map(({ address }) => address).toSorted();
}

it('encoders come and go with the addresses of their name, and no request fails', async () => {
  const [first, second] = await twoEncoders();
  const hosts = ['127.0.0.1'];
  const { pool, events } = poolOf(first.port, hosts);
  await eventually(() => pool.ready());
  expect(await served(pool)).toEqual([first.address]);

  const load = { running: true, answered: 0 };
  const callers = [1, 2, 3].map(async () => {
    while (load.running) {
      await pool.encodeQuery('the late interaction', callOptions(pool));
      load.answered += 1;
    }
  });
  hosts.push('127.0.0.2');
  await eventually(async () => (await served(pool)).length === 2);
  hosts.shift();
  await eventually(() => events.some(({ event }) => event === 'removed'));
  const before = load.answered;
  await eventually(() => load.answered > before + 20);
  expect(await served(pool)).toEqual([second.address]);
  // Its process may end now.
  await first.end();
  const after = load.answered;
  await eventually(() => load.answered > after + 20);
  load.running = false;
  await Promise.all(callers);
  expect(events).toContainEqual(expect.objectContaining({ event: 'removed', address: first.address }));
});

it('a call that runs while its encoder leaves the name is answered', async () => {
  const encoder = await startTcpEncoder('127.0.0.1');
  const hosts = ['127.0.0.1'];
  const { pool, events } = poolOf(encoder.port, hosts, { healWaitMs: 200 });
  await eventually(() => pool.ready());
  const texts = Array.from({ length: 30 }, () => 'the late interaction '.repeat(200));
  const documents = await encodeAll(pool, texts, {
    onTokenCounts: async () => {
      hosts.pop();
      await eventually(() => events.some(({ event }) => event === 'removed'));
    },
  });
  expect(documents).toHaveLength(texts.length);
  expect(pool.ready()).toBe(false);
  await expect(pool.encodeQuery('the', callOptions(pool))).rejects.toThrow(ServiceError);
});

it('an address where nobody listens holds up nothing, and one of the other family is not counted twice', async () => {
  const encoder = await startTcpEncoder('127.0.0.1');
  const { pool } = poolOf(encoder.port, [far, '127.0.0.1', '127.0.0.1', '::1']);
  await eventually(() => pool.ready());
  await expect(pool.encodeQuery('the', callOptions(pool))).resolves.toBeDefined();
  expect(await served(pool)).toEqual([encoder.address]);
});

it('a lookup that fails leaves the encoders as they are, and is reported once', async () => {
  const encoder = await startTcpEncoder('127.0.0.1');
  let failures = 0;
  let fails = false;
  const { pool, events } = poolOf(encoder.port, [], {
    lookUp: () => {
      if (fails) failures += 1;
      const found: HostAddress[] = [{ address: '127.0.0.1', family: 4 }];
      return fails ? Promise.reject(new Error('no such name')) : Promise.resolve(found);
    },
  });
  await eventually(() => pool.ready());
  fails = true;
  await eventually(() => failures > 3);
  await expect(pool.encodeQuery('the', callOptions(pool))).resolves.toBeDefined();
  expect(events.filter(({ event }) => event === 'unresolved')).toEqual([
    { event: 'unresolved', address: `dns:///encoders:${encoder.port}`, reason: 'no such name' },
  ]);
});

it('the certificate is that of the name, and not of its address', async () => {
  const { certificate, certificateFile, keyFile } = await makeCertificate(await newDirectory(), 'encoders');
  const secure = ['--tls-cert', certificateFile, '--tls-key', keyFile];
  const encoder = await startTcpEncoder('127.0.0.1', 0, secure);
  const tls = { ca: Buffer.from(certificate) };
  const { pool } = poolOf(encoder.port, ['127.0.0.1'], { tls });
  await eventually(() => pool.ready());
  const call = callOptions(pool);
  await expect(pool.encodeQuery('the', call)).resolves.toBeDefined();
  const direct = createEncoderPool({ addresses: [encoder.address], healWaitMs: 500, tls });
  onTestFinished(async () => direct.close());
  await expect(direct.encodeQuery('the', call)).rejects.toThrow(ServiceError);
});

it('names are looked up as the system does', async () => {
  const found = await systemLookUp('localhost');
  expect(found.map(({ address }) => address)).toContain('127.0.0.1');
});

it.each([
  ['dns:///encoders:50051', { host: 'encoders', port: '50051' }],
  ['dns:///a.b.svc.cluster.local:1', { host: 'a.b.svc.cluster.local', port: '1' }],
  ['dns:///encoders', undefined],
  ['dns:encoders:50051', undefined],
  ['encoders:50051', undefined],
  ['unix:/a', undefined],
])('%s is read', (address, name) => {
  expect(dnsNameOf(address)).toEqual(name);
});
