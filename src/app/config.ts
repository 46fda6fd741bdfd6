/**
 * The configuration: one schema. A program entry parses the environment once, and passes the frozen result on. The table of
 * docs/reference/configuration.md is generated from the schema (`describeConfig`).
 */
import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { z } from 'zod';
import { dnsNameOf } from '../encoder/client/dns-name.ts';
import { defaultIndexSettings } from '../index/index-settings.ts';
import { defaultRecallSettings } from '../index/recall/measuring.ts';
import { packagedModels, shippedModels } from '../process/installation.ts';
import { removedSettings } from './removed-settings.ts';
import {
  fitting,
  nearestName,
  nonEmpty,
  numberIn,
  oneOf,
  wholeNumber,
  wordOrNumber,
} from '../input/settings.ts';

const list = z.string().transform((text) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== ''),
);
const prefix = 'MAXSIMD_';
const plainPlaces: ReadonlySet<string> = new Set(['http', 'metrics', 'encoders']);

const flag = oneOf('true', 'false', '1', '0').transform((text) => text === 'true' || text === '1');
/** The metrics port, if none is chosen and this one is free. */
export const usualMetricsPort = 9464;

/** Environment name -> schema with default and description. */
const configShape = {
  MAXSIMD_HTTP_HOST: z.string().default('127.0.0.1').describe('Address of the API.'),
  MAXSIMD_HTTP_PORT: wholeNumber(0, 65535)
    .default(8080)
    .describe('Port of the API; 0 = any free port (printed).'),
  MAXSIMD_API_THREADS: wholeNumber(0, 64)
    .default(0)
    .describe(
      'Threads that serve the API; 0 = a quarter of the cores, 1 at least and 8 at most. Each takes some 60 MiB. Only Linux has more than 1.',
    ),
  MAXSIMD_HTTP_KEEP_ALIVE_MS: wholeNumber(1_000, 86_400_000)
    .default(75_000)
    .describe(
      'How long the API keeps an idle connection. It must be longer than a balancer keeps its own, or some requests are answered 502.',
    ),
  MAXSIMD_METRICS_HOST: z.string().default('127.0.0.1').describe('Address of the metrics listener.'),
  MAXSIMD_METRICS_PORT: wordOrNumber('auto', -1, 65535)
    .default('auto')
    .describe(
      `Port of \`/metrics\`; auto = ${usualMetricsPort}, or any free port if that is in use (printed); 0 = any free port (printed), -1 = off.`,
    ),
  MAXSIMD_ADMIN_HOST: z.string().default('127.0.0.1').describe('Address of the admin API.'),
  MAXSIMD_ADMIN_PORT: wholeNumber(-1, 65535)
    .default(-1)
    .describe('Port of the admin API (`/admin/v1`); 0 = any free port (printed), -1 = off.'),
  MAXSIMD_ADMIN_KEY_FILE: z
    .string()
    .default('')
    .describe(
      'File with the keys of operators, one a line, of 32 characters or more: `openssl rand -hex 32 > FILE`.',
    ),
  MAXSIMD_DATA_DIR: nonEmpty
    .default('./data')
    .describe('Directory of the catalog and the segments; created with mode 0700.'),
  MAXSIMD_CATALOG_URL: fitting(
    'must be a URL such as postgres://user:password@host:5432/database',
    (url) => url === '' || (/^postgres(ql)?:\/\/./.test(url) && URL.canParse(url)),
  )
    .default('')
    .describe(
      'Catalog that several nodes share, `postgres://user:password@host:port/database`. `sslmode`, `sslrootcert`, `sslcert` and `sslkey` in the URL set up TLS. Empty = the data directory. Set this, `MAXSIMD_BLOBS_URL` and `MAXSIMD_LIMITER_URL` together, or none.',
    ),
  MAXSIMD_BLOBS_URL: fitting('must be s3://bucket/prefix', (url) => /^(s3:\/\/[^/]+(\/.*)?)?$/.test(url))
    .default('')
    .describe(
      'Object store of the segments that several nodes share, `s3://bucket/prefix`. The AWS variables set endpoint, region and credentials; NODE_EXTRA_CA_CERTS names a certificate authority of your own.',
    ),
  MAXSIMD_LIMITER_URL: fitting('must be a URL such as redis://user:password@host:6379', (url) =>
    /^(rediss?:\/\/.+)?$/.test(url),
  )
    .default('')
    .describe(
      'Redis that holds the rate windows and concurrency slots of several nodes, `redis://user:password@host:port`, or `rediss://…` for TLS. NODE_EXTRA_CA_CERTS names a certificate authority of your own.',
    ),
  MAXSIMD_KEY_PEPPER_FILE: z
    .string()
    .default('')
    .describe(
      'File with the 32 bytes that API keys are hashed with. It is the same on every node that shares a catalog.',
    ),
  MAXSIMD_CACHE_MIB: wholeNumber(64, 1 << 30)
    .default(65_536)
    .describe('Disk space for the copies of shared segments that a node keeps in its data directory.'),
  MAXSIMD_REPLACED_KEPT_SECONDS: wholeNumber(3_600, 72_000)
    .default(3_600)
    .describe(
      'How long objects stay that merges have replaced. A shared catalog may be restored to a moment so far back.',
    ),
  MAXSIMD_MODELS_DIR: z
    .string()
    .default('')
    .describe(
      'Folder of installed models, `<name>/<version>/`, beside those in the package; empty = `models` in the data directory.',
    ),
  MAXSIMD_MODEL: list
    .refine(
      ([model = '', ...aliases]) =>
        model !== '' && !model.includes('=') && aliases.every((alias) => /^[^=]+=[^=/]+$/.test(alias)),
      'must be a model, and after commas perhaps aliases, as in bge-small-maxsim,rerank-v3.5=default',
    )
    .default(['bge-small-maxsim'])
    .describe(
      'Default model of new indexes, always loaded: `<name>` (the newest version that every node serves) or `<name>/<version>`. After commas, names that re-rank requests may use for a model or for `default`: `bge-small-maxsim,rerank-v3.5=default`.',
    ),
  MAXSIMD_MODELS_LOADED: wholeNumber(1, 64)
    .default(4)
    .describe(
      'Models that are loaded at a time, the default model included. Versions with the same graph count once.',
    ),
  MAXSIMD_ENCODERS: list
    .refine(
      (addresses) =>
        addresses.every((address) => !address.startsWith('dns:') || dnsNameOf(address) !== undefined),
      'must have a host and a port where it says dns:, as in dns:///encoders:50051',
    )
    .default([])
    .describe(
      'Comma-separated addresses of encoders (`host:port`, `unix:/path`, or `dns:///host:port` for an encoder at each address of a name, looked up every 5 s); empty = the service starts its own.',
    ),
  MAXSIMD_ENCODER_THREADS: wholeNumber(0, 256)
    .default(0)
    .describe('Inference threads of an encoder that the service starts; 0 = one per core.'),
  MAXSIMD_ENCODER_MEMORY_MIB: wholeNumber(0, 1 << 24)
    .default(0)
    .describe(
      'Resident memory at which such an encoder is restarted; 0 = 60% of the memory, shared by all such encoders.',
    ),
  MAXSIMD_ENCODER_TLS_FILES: list
    .refine((files) => [0, 1, 3].includes(files.length), 'must be ca.pem, or ca.pem,certificate.pem,key.pem')
    .default([])
    .describe(
      'TLS to the encoders of `MAXSIMD_ENCODERS`: the file of their certificate authority, `ca.pem`. With a client certificate and its key: `ca.pem,certificate.pem,key.pem`.',
    ),
  MAXSIMD_PROVIDER: fitting('must be auto, cpu, cuda, or cuda: and numbers of GPUs, as in cuda:0,1', (text) =>
    /^(auto|cpu|cuda(:\d{1,3}(,\d{1,3})*)?)$/.test(text),
  )
    .default('auto')
    .describe(
      'Where encoders run models: `cpu`, `cuda`, or `cuda:0,1` for one encoder on each of these GPUs. `cuda` that cannot load is an error; `auto` = the first GPU if CUDA loads, else the CPU.',
    ),
  MAXSIMD_ENGINE_THREADS: wholeNumber(0, 256)
    .default(0)
    .describe('Threads of the search engine; 0 = one per core.'),
  MAXSIMD_ENGINE_DEVICE: fitting(
    'must be cpu, or cuda: and the number of a GPU, as in cuda:0, or with its memory cuda:0:20480MiB',
    (device) => /^(cpu|cuda:\d{1,3}(:[1-9]\d{0,7}MiB)?)$/.test(device),
  )
    .default('cpu')
    .describe(
      'GPU that scores whole segments exactly, `cuda:0`, or `cuda:0:20480MiB` with the memory for them (half of it otherwise); `cpu` = none. Segments that do not fit are searched on the CPU.',
    ),
  MAXSIMD_RECALL_TARGET: numberIn(0, 0.998)
    .default(defaultRecallSettings.target)
    .describe(
      'Share of the exact best ten that searches at the default `candidate_k` find at least. Each index measures it on a sample of its searches, and searches more broadly or less; 0 = nothing is measured.',
    ),
  MAXSIMD_MEMORY_MIB: wholeNumber(0, 1 << 24)
    .default(0)
    .describe(
      'Memory of the search engine for all indexes: directories, codebooks, columns, builds and, if there is room, codes; tenants have equal shares of it; 0 = a third of the memory.',
    ),
  MAXSIMD_TLS_FILES: list
    .refine((files) => files.length === 0 || files.length === 2, 'must be certificate.pem,key.pem')
    .default([])
    .describe(
      'Certificate chain and private key, `certificate.pem,key.pem`: the API speaks HTTPS with them.',
    ),
  MAXSIMD_ALLOW_PLAIN: list
    .refine(
      (listeners) => listeners.every((word) => plainPlaces.has(word)),
      `must be words of ${[...plainPlaces].join(', ')} with commas between them`,
    )
    .default([])
    .describe(
      'Connections that may leave this machine without TLS, in a network of your own: `http` (the API, behind a proxy that speaks TLS), `metrics`, `encoders`, with commas between them.',
    ),
  MAXSIMD_TRUST_PROXY: flag.default(false).describe('Believe `X-Forwarded-*` headers.'),
  MAXSIMD_TRACES_URL: fitting(
    'must be a URL such as http://host:4318/v1/traces',
    (url) => url === '' || (/^https?:\/\/./.test(url) && URL.canParse(url)),
  )
    .default('')
    .describe(
      'Collector that traces are sent to, by OTLP over HTTP: the whole address, `http://host:4318/v1/traces`; empty = no traces. The standard `OTEL_EXPORTER_OTLP_` variables set headers, compression and the like, and `OTEL_TRACES_SAMPLER_ARG` the share of requests that are traced, 0 to 1.',
    ),
  MAXSIMD_CONSOLE: flag
    .default(true)
    .describe('Serve a page at `/console` where people work with their indexes, with an API key.'),
  MAXSIMD_LOG_LEVEL: oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent')
    .default('info')
    .describe('Log level (structured, on standard error).'),
  MAXSIMD_TIMEOUT_SEARCH_MS: wholeNumber(1, 3_600_000)
    .default(10_000)
    .describe('Deadline of search and score requests.'),
  MAXSIMD_TIMEOUT_UPSERT_MS: wholeNumber(1, 3_600_000)
    .default(120_000)
    .describe(
      'Deadline of upsert and rerank requests: after it the answer is 503 and nothing is stored. SIGTERM waits as long for requests in flight.',
    ),
} as const;

/** Constants that no environment variable sets. Tests and benchmarks pass others to `parseConfig`. */
export interface Constants {
  /** How long a model version that is not the default stays loaded without use. */
  readonly modelIdleMs: number;
  /** How long a request waits, within its deadline, for an encoder that restarts. Then it is 503. */
  readonly encoderWaitMs: number;
  /** Token vectors that one search may scan exactly; 0 = as many as the kernel scores in 2 ms. */
  readonly exactTokenVectorsMax: number;
  /** Token vectors at which a segment is sealed. */
  readonly segmentTokenVectorsMax: number;
  /** Measures the recall of every search, at any cost. */
  readonly measuresAll: boolean;
  /** The library that drives the engine's GPU; empty = the one that `npm run cuda:engine` builds. */
  readonly engineDeviceLibrary: string;
}

const constants: Constants = {
  modelIdleMs: 600_000,
  encoderWaitMs: 5_000,
  exactTokenVectorsMax: 0,
  segmentTokenVectorsMax: defaultIndexSettings.segmentTokenVectorsMax,
  measuresAll: false,
  engineDeviceLibrary: '',
};

/** The share of requests that are traced. It is OpenTelemetry's own variable, so it matters only where traces are on. */
const tracesShare = 'OTEL_TRACES_SAMPLER_ARG';

const schema = z.strictObject({ ...configShape, [tracesShare]: numberIn(0, 1).default(1) });

export type Config = Readonly<z.output<typeof schema> & Constants>;

/** Variables of the command line itself; `serve` ignores them. */
const commandLineVariables = [
  'MAXSIMD_URL',
  'MAXSIMD_API_KEY',
  'MAXSIMD_ADMIN_URL',
  'MAXSIMD_ADMIN_KEY',
] as const;

/**
 * Kubernetes sets variables in every pod for each Service of the namespace. Those of a Service called `maxsimd` have our
 * prefix, and are no settings.
 */
const serviceLinkNames = /_SERVICE_HOST$|_SERVICE_PORT(_\w+)?$|_PORT_\d+_(TCP|UDP)(_\w+)?$/;

/** Names of the variables that are ignored because Kubernetes set them. */
export function serviceLinksIn(environment: Readonly<Record<string, string | undefined>>): readonly string[] {
  return Object.entries(environment)
    .filter(
      ([name, value = '']) =>
        name.startsWith(prefix) &&
        (serviceLinkNames.test(name) || (name.endsWith('_PORT') && /^(tcp|udp):\/\//.test(value))),
    )
    .map(([name]) => name);
}

export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** Parses the `MAXSIMD_*` variables of an environment. A `ConfigError` names unknown variables and bad values. */
export function parseConfig(
  environment: Readonly<Record<string, string | undefined>>,
  others: Partial<Constants> = {},
): Config {
  const ignored = new Set<string>([...commandLineVariables, ...serviceLinksIn(environment)]);
  const own = Object.fromEntries(
    Object.entries(environment).filter(
      ([name, value]) => name.startsWith(prefix) && value !== undefined && !ignored.has(name),
    ),
  );
  if (own['MAXSIMD_TRACES_URL'] && environment[tracesShare]) own[tracesShare] = environment[tracesShare];
  const result = schema.safeParse(own);
  if (!result.success) {
    const lines = result.error.issues.flatMap((issue) =>
      issue.code === 'unrecognized_keys'
        ? issue.keys.map(unknownVariable)
        : [`${issue.path.join('.')} ${issue.message}`],
    );
    throw new ConfigError(`bad configuration: ${lines.join('; ')}`);
  }
  const config = { ...constants, ...others, ...result.data };
  if (config.MAXSIMD_ADMIN_PORT !== -1 && config.MAXSIMD_ADMIN_KEY_FILE === '') {
    throw new ConfigError('bad configuration: MAXSIMD_ADMIN_PORT needs MAXSIMD_ADMIN_KEY_FILE');
  }
  const shared = [config.MAXSIMD_CATALOG_URL, config.MAXSIMD_BLOBS_URL, config.MAXSIMD_LIMITER_URL];
  if (new Set(shared.map((url) => url === '')).size > 1) {
    throw new ConfigError(
      'bad configuration: MAXSIMD_CATALOG_URL, MAXSIMD_BLOBS_URL and MAXSIMD_LIMITER_URL go together: set all three or none',
    );
  }
  if ((config.MAXSIMD_CATALOG_URL === '') !== (config.MAXSIMD_KEY_PEPPER_FILE === '')) {
    throw new ConfigError(
      'bad configuration: MAXSIMD_CATALOG_URL and MAXSIMD_KEY_PEPPER_FILE go together: set both or none',
    );
  }
  return Object.freeze(config);
}

function unknownVariable(name: string): string {
  const word = name.slice(prefix.length);
  const instead = Object.hasOwn(removedSettings, word) ? removedSettings[word] : undefined;
  if (instead !== undefined) return `${name} is no longer a setting: ${instead}`;
  const known = [...Object.keys(configShape), ...commandLineVariables];
  const near = nearestName(
    word,
    known.map((each) => each.slice(prefix.length)),
  );
  return `${name} is not a variable of maxsimd${near === undefined ? '' : ` (did you mean ${prefix}${near}?)`}`;
}

const coresOfApiThread = 4;
const apiThreadsDefaultMax = 8;

export function apiThreadsOf({ MAXSIMD_API_THREADS: threads }: Pick<Config, 'MAXSIMD_API_THREADS'>): number {
  // Elsewhere the system gives all connections of a port to one of its listeners, or refuses the second.
  const mayShare = process.platform === 'linux';
  if (threads > 1 && !mayShare) {
    throw new ConfigError(`MAXSIMD_API_THREADS: threads share a port on Linux alone; set it to 1`);
  }
  if (threads > 0 || !mayShare) return Math.max(1, threads);
  return Math.max(1, Math.min(apiThreadsDefaultMax, Math.floor(availableParallelism() / coresOfApiThread)));
}

export function isClustered(config: Pick<Config, 'MAXSIMD_CATALOG_URL'>): boolean {
  return config.MAXSIMD_CATALOG_URL !== '';
}

/** Folders of installed models: `models add` installs into the first, the second is in the package. */
export function modelFoldersOf(
  config: Pick<Config, 'MAXSIMD_MODELS_DIR' | 'MAXSIMD_DATA_DIR'>,
): readonly [string, string, ...string[]] {
  const own = config.MAXSIMD_MODELS_DIR || path.join(config.MAXSIMD_DATA_DIR, 'models');
  return [path.resolve(own), shippedModels(), ...packagedModels()];
}

export function describeConfig(): readonly {
  readonly name: string;
  readonly default: string;
  readonly description: string;
}[] {
  return Object.entries(configShape).map(([name, variable]) => {
    const value: unknown = variable.parse(undefined);
    return {
      name,
      default: Array.isArray(value) ? value.join(',') : String(value),
      description: variable.description ?? '',
    };
  });
}

const pepperBytes = 32;

/** The key pepper that nodes share. A missing file is an error: a new pepper would make every API key void. */
export async function readPepper(file: string): Promise<Uint8Array> {
  const pepper = await readConfigured('MAXSIMD_KEY_PEPPER_FILE', file);
  if (pepper.length === pepperBytes) return pepper;
  throw new ConfigError(`MAXSIMD_KEY_PEPPER_FILE: ${file} must hold ${pepperBytes} bytes`);
}

/** Reads a file that a variable names. Throws a `ConfigError` with the names of both. */
export async function readConfigured(variable: string, file: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (error) {
    throw new ConfigError(`${variable}: cannot read ${file}`, { cause: error });
  }
}
