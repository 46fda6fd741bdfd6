/**
 * Encoders on this machine: a group of supervised processes for each model version in use. The group of the default
 * model lives as long as the service; others come and go with the indexes that need them (`model-groups.ts`).
 */
import { createHash } from 'node:crypto';
import { totalmem } from 'node:os';
import { modelFoldersOf, type Config } from './config.ts';
import type { Encoders } from './encoders.ts';
import { createEncoderPool } from '../encoder/client/pool.ts';
import type { EndpointEvent } from '../encoder/client/endpoint.ts';
import { type InstalledModel, installedModels } from '../encoder/model/installed-models.ts';
import type { Provider } from '../encoder/protocol/contract.ts';
import { superviseEncoders, type EncoderSupervisorOptions } from '../encoder/supervision/supervisor.ts';
import type { Logger } from '../logging.ts';
import { chosenModel } from './model-choice.ts';
import { type ModelGroup, ModelGroups } from './model-groups.ts';

/** How long a group may take to serve: it loads, verifies and warms up a model first. */
const readyMsMax = 240_000;
/** Share of the memory that all encoders may take together. */
const memoryShareMax = 0.6;

export async function startLocalEncoders(
  config: Config,
  options: {
    /** Names the server among those of the machine. */
    readonly name: string;
    readonly logger: Logger;
    readonly onEvent: (event: EndpointEvent) => void;
  },
): Promise<Omit<Encoders, 'events'>> {
  const { logger, onEvent } = options;
  const folders = modelFoldersOf(config);
  const defaultModel = await chosenModel(config);
  let groupsLoaded = 1;
  const residentBytesMax = (): number => residentBytes(config) / groupsLoaded;

  const start = async (model: InstalledModel): Promise<ModelGroup> => {
    const isDefault = model === defaultModel;
    const admitted = Promise.withResolvers<void>();
    const supervisor = await superviseEncoders({
      name: isDefault ? options.name : `${options.name}-${digestOf(model)}`,
      ...placesOf(config),
      modelDirectories: [model.directory],
      threads: config.MAXSIMD_ENCODER_THREADS,
      residentBytesMax,
      logLevel: config.MAXSIMD_LOG_LEVEL,
      onLog: (line) => process.stderr.write(`${line}\n`),
    });
    // From here on nothing may fail before there is something to close: there are child processes.
    const encoder = createEncoderPool({
      addresses: supervisor.addresses,
      exclusive: true,
      healWaitMs: config.encoderWaitMs,
      onEvent(event) {
        onEvent(event);
        if (event.event === 'admitted') admitted.resolve();
      },
    });
    const late = setTimeout(
      () => admitted.reject(new Error('the encoders did not start in time; their log may say why')),
      readyMsMax,
    );
    supervisor.ready.catch(admitted.reject);
    const ready = Promise.all([supervisor.ready, admitted.promise]).then(() => undefined);
    const settled = ready.finally(() => clearTimeout(late));
    // Awaited once everything else is up.
    settled.catch(() => undefined);
    return {
      model,
      pool: encoder,
      ready: settled,
      statistics: async () =>
        (await encoder.statistics()).map((reported) => {
          const number = supervisor.addresses.indexOf(reported.address);
          const name = isDefault ? `local-${number}` : `local-${model.name}/${model.version}-${number}`;
          return { ...reported, name };
        }),
      async close() {
        admitted.reject(new Error('the encoders were closed before they were ready'));
        await encoder.close();
        await supervisor.close();
      },
    };
  };

  const first = await start(defaultModel);
  const groups = new ModelGroups({
    first,
    installed: async () => (await installedModels(folders)).models,
    start,
    loadedMax: config.MAXSIMD_MODELS_LOADED,
    idleMs: config.modelIdleMs,
    onChange({ change, model, loaded, error }) {
      groupsLoaded = loaded;
      const { name, version } = model;
      const fields = { model: name, model_version: version, loaded };
      if (change === 'failed') logger.error({ ...fields, err: error }, 'a model does not load');
      else logger.info(fields, `model ${change}`);
    },
  });
  return {
    pool: groups,
    ready: first.ready,
    statistics: () => groups.statistics(),
    close: () => groups.close(),
  };
}

/** An encoder for each GPU that the configuration names; one in all if it names none. */
function placesOf({
  MAXSIMD_PROVIDER: chosen,
}: Config): Pick<EncoderSupervisorOptions, 'provider' | 'devices' | 'processes'> {
  const [provider, numbers] = chosen.split(':') as [Provider, string?];
  const devices = numbers?.split(',').map(Number) ?? [];
  return { provider, devices, processes: Math.max(1, devices.length) };
}

/** Bound of one process, while one model is loaded. */
function residentBytes(config: Config): number {
  if (config.MAXSIMD_ENCODER_MEMORY_MIB > 0) return config.MAXSIMD_ENCODER_MEMORY_MIB * 2 ** 20;
  // Undefined or beyond the machine where nothing constrains the process.
  const available = Math.min(process.constrainedMemory() || Infinity, totalmem());
  return (available * memoryShareMax) / placesOf(config).processes;
}

/** Short, for the path of a socket. */
function digestOf({ name, version }: InstalledModel): string {
  return createHash('sha256').update(`${name}/${version}`).digest('hex').slice(0, 8);
}
