/** Our own encoder for a benchmark: processes under the supervisor, called over gRPC, as the server does it. */
import { createEncoderPool } from '../../src/encoder/client.ts';
import type { Encoder } from '../../src/encoder/contract.ts';
import { superviseEncoders } from '../../src/encoder/supervisor.ts';
import type { Device } from './device.ts';

export interface EncoderPool {
  readonly pool: Encoder;
  readonly processIds: () => readonly number[];
  readonly close: () => Promise<void>;
}

/** Resolves when the pool serves the model of the directory; fails with what the process said. */
export async function startEncoder(modelDirectory: string, device: Device): Promise<EncoderPool> {
  const logs: string[] = [];
  const supervisor = await superviseEncoders({
    processes: 1,
    modelDirectories: [modelDirectory],
    provider: device.provider,
    devices: [device.index],
    threads: device.threads,
    onLog: (line) => logs.push(line),
  });
  const admitted = Promise.withResolvers<void>();
  const pool = createEncoderPool({
    addresses: supervisor.addresses,
    onEvent: ({ event }) => {
      if (event === 'admitted') admitted.resolve();
    },
  });
  const close = async (): Promise<void> => {
    await pool.close();
    await supervisor.close();
  };
  try {
    await supervisor.ready;
    await admitted.promise;
  } catch (error) {
    await close();
    throw new Error(`our encoder did not start:\n${logs.join('\n')}`, { cause: error });
  }
  return { pool, processIds: () => supervisor.processIds(), close };
}
