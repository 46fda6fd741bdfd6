/**
 * The encoders of several model versions behind the `EncoderPool` contract. A group is the encoders of one graph, and serves all
 * versions that have it. It starts for one of them; others that are damaged are left out, and get a group of their own when they are
 * asked for, which fails and says why. The groups of models that have indexes start with the service. Another one starts when a request needs
 * it, and ends when it was not used for a while and no index has a model of it. The group of the default model always stays.
 *
 * The number of loaded groups is bounded. If another one is needed, the group that was idle longest ends. A group keeps its
 * place for some seconds, so that two tenants with two models do not replace each other's groups all the time.
 */
import type { ModelReference } from './default-model.ts';
import type { NamedStatistics } from '../encoders.ts';
import { unavailable } from '../../encoder/client/tries.ts';
import type {
  EncodedDocument,
  EncodedQuery,
  EncodeDocumentsOptions,
  EncodeOptions,
  EncodeQueryOptions,
  LocatedText,
  TokenSpans,
  EncoderPool,
  EncoderModel,
} from '../../encoder/protocol/contract.ts';
import { findInstalled, type InstalledModel, withSameGraph } from '../../encoder/model/installed-models.ts';

/** All have one graph. The group starts for the first; the others may be left out. */
export type ModelsOfGroup = readonly [InstalledModel, ...InstalledModel[]];

export function modelsOfGroup(installed: readonly InstalledModel[], wanted: InstalledModel): ModelsOfGroup {
  return [wanted, ...withSameGraph(installed, wanted).filter(({ version }) => version !== wanted.version)];
}

export interface ModelGroup {
  /** Once it is ready, those that it serves. */
  models(): readonly InstalledModel[];
  readonly pool: EncoderPool;
  /** Resolves when they serve, rejects when they cannot. */
  readonly ready: Promise<void>;
  statistics(): Promise<readonly NamedStatistics[]>;
  close(): Promise<void>;
}

export interface ModelGroupsOptions {
  readonly first: ModelGroup;
  readonly installed: () => Promise<readonly InstalledModel[]>;
  /** The model versions that indexes have, those of most indexes first. */
  readonly withIndexes: () => Promise<readonly ModelReference[]>;
  readonly start: (models: ModelsOfGroup) => Promise<ModelGroup>;
  /** Loaded groups, the first included. */
  readonly loadedMax: number;
  readonly idleMs: number;
  readonly onChange: (change: GroupChange) => void;
}

type Change = 'loading' | 'loaded' | 'unloaded' | 'failed';

export interface GroupChange {
  readonly change: Change;
  readonly models: readonly InstalledModel[];
  readonly loaded: number;
  readonly error: unknown;
}

type Limits = Pick<EncodeOptions, 'deadlineMs' | 'signal'>;

/** A group that was idle for so long may end for another one. */
const placeMs = 10_000;
/** A model that failed to load is tried again after so long. */
const failureMs = 60_000;
const loadingRetrySeconds = 5;

class Loaded {
  readonly #wanted: ModelsOfGroup;
  readonly group: Promise<ModelGroup>;
  started: ModelGroup | undefined;
  serves = false;
  #calls = 0;
  #leftAt = performance.now();

  constructor(wanted: ModelsOfGroup, group: Promise<ModelGroup>) {
    this.#wanted = wanted;
    this.group = group.then((started) => (this.started = started));
    // Requests that wait for the group see its failure.
    this.group.catch(() => undefined);
  }

  get models(): readonly InstalledModel[] {
    return this.started?.models() ?? this.#wanted;
  }

  /** The version that the group was started for. */
  get first(): InstalledModel {
    return this.#wanted[0];
  }

  enter(): void {
    this.#calls += 1;
  }

  leave(): void {
    this.#calls -= 1;
    this.#leftAt = performance.now();
  }

  get idleMs(): number {
    return this.#calls > 0 ? 0 : performance.now() - this.#leftAt;
  }
}

export class ModelGroups implements EncoderPool {
  readonly #options: ModelGroupsOptions;
  readonly #first: ModelGroup;
  /** All but the first. */
  readonly #loaded = new Set<Loaded>();
  readonly #ends = new Set<Promise<void>>();
  /** Why the groups of versions failed to start the last time. */
  readonly #failures = new Map<string, { readonly at: number; readonly reason: string }>();
  readonly #sweep: NodeJS.Timeout;
  #closed: Promise<void> | undefined;

  constructor(options: ModelGroupsOptions) {
    this.#options = options;
    this.#first = options.first;
    this.#sweep = setInterval(() => void this.#endIdle(), options.idleMs / 4).unref();
  }

  /** Loads the models that have indexes, as far as there is room. Resolves when each serves or has failed. */
  async loadWithIndexes(): Promise<void> {
    const { installed, withIndexes, loadedMax } = this.#options;
    const [models, wanted] = await Promise.all([installed(), withIndexes()]);
    const groups: Promise<void>[] = [];
    for (const { name, version } of wanted) {
      const model = findInstalled(models, { name, version });
      if (model === undefined || this.#isReached(model)) continue;
      if (this.#loaded.size + 1 === loadedMax) break;
      this.#load(model, models);
      groups.push(this.#loadedWith(model)!.group.then(async ({ ready }) => ready));
    }
    await Promise.allSettled(groups);
  }

  models(): readonly EncoderModel[] {
    return this.#groups().flatMap(({ pool }) => pool.models());
  }

  async modelNames(): Promise<readonly string[]> {
    const installed = await this.#options.installed();
    return [...new Set([...this.#first.models(), ...installed].map(({ name }) => name))];
  }

  runsOnGpu(model: EncodeOptions['model']): boolean {
    return this.#groups().some((group) => hasModel(group.models(), model) && group.pool.runsOnGpu(model));
  }

  ready(): boolean {
    return this.#first.pool.ready();
  }

  async awaitModel(
    wanted: { readonly name: string; readonly version?: string | undefined },
    limits: Limits,
  ): Promise<EncoderModel | undefined> {
    const { name, version } = wanted;
    const known = version === undefined ? undefined : { name, version };
    if (known !== undefined && this.#isReached(known)) return this.#served(known, limits);
    const installed = await this.#options.installed();
    const model = findInstalled(installed, wanted);
    if (model === undefined) return undefined;
    this.#load(model, installed);
    return this.#served(model, limits);
  }

  async countTokens(texts: readonly string[], options: EncodeOptions): Promise<readonly number[]> {
    return this.#use(options, async (pool) => pool.countTokens(texts, options));
  }

  async locateTokens(located: LocatedText, options: EncodeOptions): Promise<TokenSpans> {
    return this.#use(options, async (pool) => pool.locateTokens(located, options));
  }

  async encodeQuery(text: string, options: EncodeQueryOptions): Promise<EncodedQuery> {
    return this.#use(options, async (pool) => pool.encodeQuery(text, options));
  }

  async *encodeDocuments(
    texts: readonly string[],
    options: EncodeDocumentsOptions,
  ): AsyncGenerator<EncodedDocument, void, undefined> {
    const loaded = this.#holding(options);
    loaded?.enter();
    try {
      const { pool } = (await loaded?.group) ?? this.#first;
      yield* pool.encodeDocuments(texts, options);
    } finally {
      loaded?.leave();
    }
  }

  async statistics(): Promise<readonly NamedStatistics[]> {
    return (await Promise.all(this.#groups().map(async (group) => group.statistics()))).flat();
  }

  async close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    clearInterval(this.#sweep);
    for (const loaded of this.#loaded) this.#end(loaded);
    await Promise.all([this.#first.close(), ...this.#ends]);
  }

  #groups(): readonly ModelGroup[] {
    const others = [...this.#loaded].map(({ started }) => started);
    return [this.#first, ...others.filter((group) => group !== undefined)];
  }

  /** Whether a group serves a version, or is being loaded for it. */
  #isReached(model: ModelReference): boolean {
    return hasModel(this.#first.models(), model) || this.#loadedWith(model) !== undefined;
  }

  /** The group, other than the first, of a version. */
  #loadedWith(model: ModelReference): Loaded | undefined {
    return [...this.#loaded].find(({ models }) => hasModel(models, model));
  }

  /** Starts a group for a version and those with its graph, if it has none and there is room. */
  #load(model: InstalledModel, installed: readonly InstalledModel[]): void {
    if (this.#isReached(model)) return;
    if (this.#closed !== undefined) throw unavailable('the encoders are closed');
    const failure = this.#failures.get(nameOf(model));
    if (failure !== undefined && performance.now() - failure.at < failureMs) {
      throw notLoading(model, failure.reason);
    }
    this.#makeRoom(model);
    // A version that was installed later than the others has a group of its own.
    const [, ...others] = modelsOfGroup(installed, model);
    const models: ModelsOfGroup = [model, ...others.filter((each) => !this.#isReached(each))];
    // A group that is ending still has its memory, and its socket if it is of the same model.
    const group = Promise.all(this.#ends).then(async () => this.#options.start(models));
    const loaded = new Loaded(models, group);
    this.#loaded.add(loaded);
    this.#tell('loading', models);
    void this.#follow(loaded);
  }

  #makeRoom(model: InstalledModel): void {
    const { loadedMax } = this.#options;
    if (this.#loaded.size + 1 < loadedMax) return;
    const longestIdle = [...this.#loaded]
      .filter(({ idleMs }) => idleMs >= placeMs)
      .toSorted((a, b) => b.idleMs - a.idleMs)[0];
    if (longestIdle === undefined) {
      throw unavailable(
        `${nameOf(model)} is not loaded and has no room: at most ${loadedMax} models are loaded at a time`,
        { seconds: placeMs / 1000 },
      );
    }
    this.#end(longestIdle);
  }

  async #follow(loaded: Loaded): Promise<void> {
    const key = nameOf(loaded.first);
    try {
      await (
        await loaded.group
      ).ready;
      loaded.serves = true;
      this.#failures.delete(key);
      this.#tell('loaded', loaded.models);
    } catch (error) {
      // The group was ended before it served.
      if (!this.#loaded.has(loaded)) return;
      this.#failures.set(key, { at: performance.now(), reason: (error as Error).message });
      this.#tell('failed', loaded.models, error);
      this.#end(loaded);
    }
  }

  /** The model, once its group serves it within a short time. */
  async #served(model: ModelReference, limits: Limits): Promise<EncoderModel | undefined> {
    const loaded = this.#loadedWith(model);
    if (loaded === undefined) return this.#first.pool.awaitModel(model, limits);
    loaded.enter();
    try {
      const { pool } = await loaded.group;
      return await pool.awaitModel(model, limits);
    } catch (error) {
      limits.signal.throwIfAborted();
      if (loaded.serves) throw error;
      const failure = this.#failures.get(nameOf(loaded.first));
      if (failure !== undefined) throw notLoading(model, failure.reason);
      throw unavailable(`${nameOf(model)} is being loaded`, { seconds: loadingRetrySeconds });
    } finally {
      loaded.leave();
    }
  }

  async #endIdle(): Promise<void> {
    const isIdle = ({ idleMs }: Loaded): boolean => idleMs >= this.#options.idleMs;
    if (![...this.#loaded].some(isIdle)) return;
    // If the catalog cannot be read, all stay until the next time.
    const kept = await this.#options.withIndexes().catch(() => undefined);
    if (kept === undefined) return;
    for (const loaded of this.#loaded) {
      if (isIdle(loaded) && !kept.some((model) => hasModel(loaded.models, model))) this.#end(loaded);
    }
  }

  #end(loaded: Loaded): void {
    this.#loaded.delete(loaded);
    const end = loaded.group
      .then(async (group) => group.close())
      .catch(() => undefined)
      .finally(() => this.#ends.delete(end));
    this.#ends.add(end);
    this.#tell('unloaded', loaded.models);
  }

  /** The group of a call whose model was awaited; absent = the first group. */
  #holding({ model }: EncodeOptions): Loaded | undefined {
    if (hasModel(this.#first.models(), model)) return undefined;
    const loaded = this.#loadedWith(model);
    if (loaded !== undefined) return loaded;
    throw unavailable(`${nameOf(model)} is no longer loaded`);
  }

  async #use<T>(options: EncodeOptions, call: (pool: EncoderPool) => Promise<T>): Promise<T> {
    const loaded = this.#holding(options);
    loaded?.enter();
    try {
      return await call(((await loaded?.group) ?? this.#first).pool);
    } finally {
      loaded?.leave();
    }
  }

  #tell(change: Change, models: readonly InstalledModel[], error?: unknown): void {
    this.#options.onChange({ change, models, loaded: this.#loaded.size + 1, error });
  }
}

function notLoading(model: ModelReference, reason: string): Error {
  return unavailable(`${nameOf(model)} is installed but cannot be loaded: ${reason}`, {
    seconds: failureMs / 1000,
  });
}

export function hasModel(models: readonly ModelReference[], { name, version }: ModelReference): boolean {
  return models.some((model) => model.name === name && model.version === version);
}

function nameOf({ name, version }: ModelReference): string {
  return `model ${name} version ${version}`;
}
