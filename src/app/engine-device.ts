/** The engine's GPU: its configuration, and the log lines about it. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import type { EngineDeviceOptions, NativeEngine } from '../index/engine/native.ts';
import { cudaLibrary } from '../process/installation.ts';
import type { Logger } from '../observation/logging.ts';
import { ConfigError, type Config } from './config.ts';

const lookMs = 10_000;
/** Remembered refusals. Each is logged once. */
const refusedMax = 1_000;

/** Empty without a GPU. Throws a `ConfigError` if the library that drives the GPU is missing. */
export function engineDeviceOf(config: Config): { readonly device?: EngineDeviceOptions } {
  const [kind, ordinal, memory = '0'] = config.MAXSIMD_ENGINE_DEVICE.split(':');
  if (kind === 'cpu') return {};
  const driver = path.resolve(config.engineDeviceLibrary || cudaLibrary());
  if (!existsSync(driver))
    throw new ConfigError(
      `MAXSIMD_ENGINE_DEVICE: ${driver} is not there; \`npm run cuda:engine\` builds it in a checkout`,
    );
  return {
    device: {
      driver,
      ordinal: Number(ordinal),
      memoryBytes: Number.parseInt(memory, 10) * 2 ** 20,
    },
  };
}

/** Logs segments that found no room or could not be read, and failures of the GPU. Returns a function that stops this. */
export function watchEngineDevice(engine: NativeEngine, logger: Logger): () => void {
  if (engine.device() === undefined) return () => {};
  const refused = new Set<string>();
  let known = '';
  const timer = setInterval(() => {
    const device = engine.device();
    if (device === undefined) return;
    const { refusal, failure } = device;
    // A segment that searches keep asking for is refused once a minute.
    if (refusal !== '' && !refused.has(refusal)) {
      if (refused.size >= refusedMax) refused.clear();
      refused.add(refusal);
      logger.warn({ refusal }, 'a segment is not in the memory of the GPU');
    }
    if (failure !== known && failure !== '')
      logger.error({ failure }, 'the GPU of the engine failed: searches go on without it');
    known = failure;
  }, lookMs);
  timer.unref();
  return () => clearInterval(timer);
}
