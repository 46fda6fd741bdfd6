/** Encoders on this machine: a group of supervised processes for each graph in use (`models/model-groups.ts`). */
import { createHash } from 'node:crypto';
import type { Catalog } from '../catalog/contract.ts';
import { modelFoldersOf, type Config } from './config.ts';
import type { Encoders } from './encoders.ts';
import { createEncoderPool } from '../encoder/client/pool.ts';
import type { EndpointEvent } from '../encoder/client/endpoint.ts';
import { type InstalledModel, installedModels } from '../encoder/model/installed-models.ts';
import type { Provider } from '../encoder/protocol/contract.ts';
import {
  superviseEncoders,
  type EncoderSupervisor,
  type EncoderSupervisorOptions,
} from '../encoder/supervision/supervisor.ts';
import { passLogLine, type Logger } from '../observation/logging.ts';
import { encoderMemoryBytes } from './memory.ts';
import { chosenModel } from './models/model-choice.ts';
import {
  type GroupChange,
  type ModelGroup,
  ModelGroups,
  type ModelsOfGroup,
  hasModel,
  modelsOfGroup,
} from './models/model-groups.ts';

/** How long a group may take to serve: it loads, verifies and warms up a model first. */
const readyMsMax = 240_000;

export interface LocalEncoderOptions {
  /** Names the server among those of the machine. */
  readonly name: string;
  readonly logger: Logger;
  readonly onEvent: (event: EndpointEvent) => void;
  readonly catalog: ModelUses;
}

export type ModelUses = Pick<Catalog, 'listModelVersions'>;

export async function startLocalEncoders(
  config: Config,
  options: LocalEncoderOptions,
): Promise<Omit<Encoders, 'events'>> {
  const folders = modelFoldersOf(config);
  const defaultModel = await chosenModel(config);
  const { models: atStart } = await installedModels(folders);
  const places = placesOf(config);
  let groupsLoaded = 1;
  const start = async (models: ModelsOfGroup): Promise<ModelGroup> => {
    const [wanted, ...others] = models;
    const isDefault = wanted.directory === defaultModel.directory;
    const supervisor = await superviseEncoders({
      ...places,
      name: isDefault ? options.name : `${options.name}-${digestOf(wanted)}`,
      modelDirectories: [wanted.directory],
      optionalModelDirectories: others.map(({ directory }) => directory),
      threads: config.MAXSIMD_ENCODER_THREADS,
      residentBytesMax: () => encoderMemoryBytes(config, places.processes) / groupsLoaded,
      logLevel: config.MAXSIMD_LOG_LEVEL,
      onLog: (line) => passLogLine(`${line}\n`),
    });
    return groupOf({
      models,
      isDefault,
      supervisor,
      healWaitMs: config.encoderWaitMs,
      onEvent: options.onEvent,
    });
  };

  const first = await start(modelsOfGroup(atStart, defaultModel));
  const groups = new ModelGroups({
    first,
    installed: async () => (await installedModels(folders)).models,
    withIndexes: async () =>
      (await options.catalog.listModelVersions()).map(({ model, modelVersion }) => ({
        name: model,
        version: modelVersion,
      })),
    start,
    loadedMax: config.MAXSIMD_MODELS_LOADED,
    idleMs: config.modelIdleMs,
    onChange(change) {
      groupsLoaded = change.loaded;
      logChange(options.logger, change);
    },
  });
  const ready = Promise.all([first.ready, groups.loadWithIndexes()]).then(() => undefined);
  // Awaited once everything else is up.
  ready.catch(() => undefined);
  return {
    pool: groups,
    // A version that is installed later becomes the default with the next start.
    offered: () => atStart,
    ready,
    statistics: () => groups.statistics(),
    close: () => groups.close(),
  };
}

/** The processes run already: nothing may fail before there is something to close. */
function groupOf(started: {
  readonly models: ModelsOfGroup;
  readonly isDefault: boolean;
  readonly supervisor: EncoderSupervisor;
  readonly healWaitMs: number;
  readonly onEvent: (event: EndpointEvent) => void;
}): ModelGroup {
  const { models, isDefault, supervisor, healWaitMs, onEvent } = started;
  const [model] = models;
  const admitted = Promise.withResolvers<void>();
  const pool = createEncoderPool({
    addresses: supervisor.addresses,
    exclusive: true,
    healWaitMs,
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
  let served: readonly InstalledModel[] = models;
  const start = async (): Promise<void> => {
    try {
      await Promise.all([supervisor.ready, admitted.promise]);
    } finally {
      clearTimeout(late);
    }
    served = models.filter((each) => hasModel(pool.models(), each));
  };
  const ready = start();
  // Awaited once everything else is up.
  ready.catch(() => undefined);
  const prefix = isDefault ? 'local' : `local-${model.name}/${model.version}`;
  return {
    models: () => served,
    pool,
    ready,
    statistics: async () =>
      (await pool.statistics()).map((reported) => ({
        ...reported,
        name: `${prefix}-${supervisor.addresses.indexOf(reported.address)}`,
      })),
    async close() {
      admitted.reject(new Error('the encoders were closed before they were ready'));
      await pool.close();
      await supervisor.close();
    },
  };
}

function logChange(logger: Logger, { change, models, loaded, error }: GroupChange): void {
  const fields = {
    model: models[0]!.name,
    model_version: models.map(({ version }) => version).join(', '),
    loaded,
  };
  if (change === 'failed') logger.error({ ...fields, err: error }, 'a model cannot be loaded');
  else logger.info(fields, `model ${change}`);
}

/** An encoder for each GPU that the configuration names; one in all if it names none. */
function placesOf({
  MAXSIMD_PROVIDER: chosen,
}: Config): Pick<EncoderSupervisorOptions, 'provider' | 'devices' | 'processes'> {
  const [provider, numbers] = chosen.split(':') as [Provider, string?];
  const devices = numbers?.split(',').map(Number) ?? [];
  return { provider, devices, processes: Math.max(1, devices.length) };
}

/** Short, because it becomes a part of a socket's path. */
function digestOf({ name, version }: InstalledModel): string {
  return createHash('sha256').update(`${name}/${version}`).digest('hex').slice(0, 8);
}
