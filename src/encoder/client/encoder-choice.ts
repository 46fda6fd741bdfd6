/**
 * Chooses the encoder of each call: of those that serve the model version, the one with the fewest tokens outstanding. It keeps an
 * endpoint for each address, also while the addresses of a DNS name change. It never waits and tries nothing again: the pool does.
 */
import { ChannelCredentials } from '@grpc/grpc-js';
import type { EncodeOptions, EncoderModel } from '../protocol/contract.ts';
import { estimatedTokens } from '../protocol/estimated-tokens.ts';
import { dnsNameOf, followDnsName, type LookUp, systemLookUp } from './dns-name.ts';
import { Endpoint, type EndpointEvent, type OpenCall } from './endpoint.ts';
import { CorruptReply } from './replies.ts';
import type { Tries } from './tries.ts';

export interface EncoderChoiceOptions {
  /** `unix:/path`, `host:port`, or `dns:///host:port`, which is an encoder at each address of the host. */
  readonly addresses: readonly string[];
  readonly lookUp?: LookUp;
  readonly lookUpIntervalMs?: number;
  /** PEM. Absent = plain connections. With certificate and key TLS is mutual. */
  readonly tls?: { readonly ca: Buffer; readonly certificate?: Buffer; readonly key?: Buffer };
  readonly healthIntervalMs?: number;
  readonly healthTimeoutMs?: number;
  readonly onEvent?: (event: EndpointEvent) => void;
}

const defaults = {
  healthIntervalMs: 500,
  healthTimeoutMs: 1500,
  lookUp: systemLookUp,
  lookUpIntervalMs: 5000,
};

/** An encoder that a call goes to. The call counts there as open. */
export interface Picked {
  readonly endpoint: Endpoint;
  readonly model: EncoderModel;
  readonly open: OpenCall;
}

export class EncoderChoice {
  readonly #options: EncoderChoiceOptions;
  readonly #credentials: ChannelCredentials;
  readonly #onChange: () => void;
  readonly #onEvent: (event: EndpointEvent) => void;
  #endpoints: readonly Endpoint[];
  /** Each model version that was ever served, as it was reported first. */
  readonly #known = new Map<string, EncoderModel>();
  readonly #closed = new AbortController();

  /** `onChange` is called when an encoder comes or goes, and when calls need no longer keep away from one. */
  constructor(options: EncoderChoiceOptions, onChange: () => void) {
    this.#options = options;
    this.#onChange = onChange;
    this.#onEvent = options.onEvent ?? (() => undefined);
    const { addresses, tls } = options;
    this.#credentials =
      tls === undefined
        ? ChannelCredentials.createInsecure()
        : ChannelCredentials.createSsl(tls.ca, tls.key ?? null, tls.certificate ?? null);
    this.#endpoints = addresses
      .filter((address) => dnsNameOf(address) === undefined)
      .map((address) => this.#newEndpoint(address));
    for (const address of addresses) this.#follow(address);
  }

  /** The endpoints that take calls, now or after a retrial. */
  admitted(): readonly Endpoint[] {
    return this.#endpoints.filter(({ admitted }) => admitted);
  }

  /** Whether every encoder is up and takes any call, so that waiting for one changes nothing. */
  get allInUse(): boolean {
    return (
      this.#endpoints.length > 0 &&
      this.#endpoints.every(({ admitted, retrial }) => admitted && !retrial.isOpen)
    );
  }

  models(): readonly EncoderModel[] {
    const models = new Map<string, EncoderModel>();
    for (const endpoint of this.#endpoints) {
      for (const model of endpoint.models) models.set(`${model.name}/${model.version}`, model);
    }
    return [...models.values()];
  }

  /** Whether every encoder that serves this version runs it on a GPU. */
  runsOnGpu(model: EncodeOptions['model']): boolean {
    const serving = this.#endpoints.filter((endpoint) => modelOf(endpoint, { model }) !== undefined);
    return serving.length > 0 && serving.every(({ provider }) => provider === 'cuda');
  }

  /** Those that each encoder serves that is up. */
  modelsOfAll(): readonly EncoderModel[] {
    const served = this.admitted().map(({ models }) => models);
    const [first = [], ...others] = served;
    return first.filter(({ name, version }) =>
      others.every((models) => models.some((model) => model.name === name && model.version === version)),
    );
  }

  /** Each model version that was ever served. */
  known(): readonly EncoderModel[] {
    return [...this.#known.values()];
  }

  /**
   * The least loaded encoder that serves the version and did not refuse this call. `onlyAt`: the call has that encoder to itself
   * and may go to no other.
   */
  pick(
    { options, tries }: { readonly options: EncodeOptions; readonly tries: Tries },
    texts: readonly string[],
    onlyAt?: Endpoint,
  ): Picked | undefined {
    let best: Endpoint | undefined;
    for (const endpoint of this.#endpoints) {
      if (onlyAt === undefined ? endpoint.retrial.isOpen : endpoint !== onlyAt) continue;
      if (modelOf(endpoint, options) === undefined || tries.refusedBy.has(endpoint)) continue;
      if (best === undefined || tries.cost(endpoint) < tries.cost(best)) best = endpoint;
    }
    if (best === undefined) return undefined;
    const tokens = texts.reduce((sum, text) => sum + estimatedTokens(text), 1);
    return { endpoint: best, model: modelOf(best, options)!, open: best.begin(tokens) };
  }

  close(): void {
    this.#closed.abort();
    for (const endpoint of this.#endpoints) endpoint.close();
  }

  #newEndpoint(address: string, serverName?: string): Endpoint {
    return new Endpoint({
      address,
      ...(serverName === undefined ? {} : { serverName }),
      credentials: this.#credentials,
      healthIntervalMs: this.#options.healthIntervalMs ?? defaults.healthIntervalMs,
      healthTimeoutMs: this.#options.healthTimeoutMs ?? defaults.healthTimeoutMs,
      checkModels: (served) => this.#checkModels(served),
      onChange: this.#onChange,
      onEvent: this.#onEvent,
    });
  }

  /** Keeps an endpoint for each address of a DNS name. */
  #follow(address: string): void {
    const name = dnsNameOf(address);
    if (name === undefined) return;
    let followed: readonly Endpoint[] = [];
    let failure: string | undefined;
    void followDnsName(name, {
      lookUp: this.#options.lookUp ?? defaults.lookUp,
      intervalMs: this.#options.lookUpIntervalMs ?? defaults.lookUpIntervalMs,
      signal: this.#closed.signal,
      onAddresses: (found) => {
        failure = undefined;
        const gone = followed.filter((endpoint) => !found.includes(endpoint.address));
        const kept = followed.filter((endpoint) => !gone.includes(endpoint));
        const added = found
          .filter((each) => !kept.some((endpoint) => endpoint.address === each))
          .map((each) => this.#newEndpoint(each, name.host));
        followed = [...kept, ...added];
        this.#endpoints = [...this.#endpoints.filter((endpoint) => !gone.includes(endpoint)), ...added];
        for (const endpoint of gone) endpoint.retire();
        if (gone.length > 0) this.#onChange();
      },
      onFailure: (reason) => {
        if (reason !== failure) this.#onEvent({ event: 'unresolved', address, reason });
        failure = reason;
      },
    });
  }

  /** A model version is immutable, so an encoder must not report other rows than the first one did. */
  #checkModels(served: readonly EncoderModel[]): void {
    for (const model of served) {
      const name = `${model.name}/${model.version}`;
      const known = this.#known.get(name) ?? model;
      if (
        known.dim !== model.dim ||
        known.rowBits !== model.rowBits ||
        known.poolFactor !== model.poolFactor
      ) {
        throw new CorruptReply(`the encoder serves another model as ${name}`);
      }
      this.#known.set(name, known);
    }
  }
}

function modelOf(endpoint: Endpoint, { model }: Pick<EncodeOptions, 'model'>): EncoderModel | undefined {
  return endpoint.models.find(({ name, version }) => name === model.name && version === model.version);
}
