/** A server whose engine scores on a device: one that the CPU emulates, behind the interface that a GPU is driven by. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { call } from '../../support/running/client.ts';
import { createTenant } from '../../support/commands/command-line.ts';
import type { TestTenant } from '../../support/commands/operators.ts';
import { eventually, within } from '../../support/running/eventually.ts';
import { hasCompiler, sharedLibrary } from '../../support/machine/shared-library.ts';
import { launchServer } from '../../support/running/launch.ts';
import { startServer, type ServerProcess } from '../../support/running/server.ts';
import { find, makeIndex, put } from '../../support/running/requests.ts';
import { passages } from '../../support/running/texts.ts';

const files = [
  'native/test/device/emulated_entry.cpp',
  'native/test/device/emulated_library.cpp',
  'native/test/device/emulated_library.h',
  'native/test/device/emulated_warp.h',
  'native/device/cuda/warp_program.h',
  'native/device/library.h',
  'native/kernels/half.h',
  'native/kernels/rows.h',
];

describe.skipIf(!hasCompiler())('An engine with a device (there is a C++ compiler)', () => {
  let server: ServerProcess;
  let tenant: TestTenant;
  let engineDeviceLibrary = '';

  beforeAll(async () => {
    engineDeviceLibrary = sharedLibrary('emulated-device', files);
    server = await startServer({
      metrics: true,
      sharedEncoder: true,
      env: { MAXSIMD_ENGINE_DEVICE: 'cuda:0:1MiB' },
      // Segments are full after a text or two, and worth a copy.
      constants: { engineDeviceLibrary, segmentTokenVectorsMax: 64, exactTokenVectorsMax: 64 },
    });
    tenant = await createTenant(server);
  });

  afterAll(async () => {
    await server?.kill();
    await server?.scratch.remove();
  });

  async function metricsOf(): Promise<string> {
    return (await call(server.metricsUrl ?? '')).text;
  }

  test('names it in the log', () => {
    expect(server.output().stderr).toMatch(/"device":"emulated".*"ready"/);
  });

  /** Rows of 8 bits, and of 2. */
  test.each(['minilm-l6-maxsim', 'bge-small-maxsim'])(
    'copies what is searched with %s, and finds the same there',
    async (model) => {
      const { client } = tenant;
      const searches = async (): Promise<number> =>
        Number(/^maxsimd_engine_searches_total\{plan="device"\} (\d+)/m.exec(await metricsOf())?.[1] ?? 0);
      const searchesBefore = await searches();
      const { id } = await makeIndex(client, { model });
      await put(
        client,
        id,
        passages.map(({ subject, text }) => ({ doc_id: subject, text })),
      );
      expect(await metricsOf()).toMatch(/^maxsimd_engine_device_failed 0$/m);
      const ask = async (question: string) => (await find(client, id, { query: question, top_k: 5 })).results;
      const before: unknown[] = [];
      for (const { question } of passages) before.push(await ask(question));
      await eventually(async () => {
        const found: unknown[] = [];
        for (const { question } of passages) found.push(await ask(question));
        expect(found).toEqual(before);
        return (await searches()) > searchesBefore;
      });
      const metrics = await metricsOf();
      expect(metrics).toMatch(/^maxsimd_engine_device_bytes\{kind="bound"\} 1048576$/m);
      expect(metrics).toMatch(/^maxsimd_engine_device_bytes\{kind="taken"\} [1-9]/m);
      expect(metrics).toMatch(/^maxsimd_engine_device_segments_scored_total [1-9]/m);
    },
  );

  test.each([
    ['a device that is not there', 'cuda:7', {}, 'no device of this number'],
    ['no library', 'cuda:0', { engineDeviceLibrary: '/no/such.so' }, '/no/such.so is not there'],
    ['a file that is none', 'cuda:0', { engineDeviceLibrary: 'package.json' }, 'package.json'],
    ['an unknown kind', 'tpu:0', {}, 'MAXSIMD_ENGINE_DEVICE'],
  ])('refuses to start with %s', async (_, device, constants, words) => {
    const launched = await launchServer({
      env: { MAXSIMD_ENGINE_DEVICE: device },
      constants: { engineDeviceLibrary, ...constants },
    });
    const exit = await within('the refusal', launched.exited);
    expect(exit.code).toBeGreaterThan(0);
    expect(launched.output().stderr).toContain(words);
    await launched.scratch.remove();
  });
});
