/**
 * Configuration: one schema, parsed once by a program entry and frozen; everything else is handed the
 * slice it needs. The README's table is generated from it (`describeConfig`).
 */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { shippedModels } from '../installation.ts';
import { fitting, nearestName, nonEmpty, numberIn, oneOf, wholeNumber, wordOrNumber } from '../settings.ts';

const list = z.string().transform((text) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== ''),
);
const prefix = 'MAXSIMD_';

const flag = oneOf('true', 'false', '1', '0').transform((text) => text === 'true' || text === '1');
/** What this port is unless it is chosen or in use. */
export const usualMetricsPort = 9464;

/** Environment name -> schema with default and description. */
const configShape = {
  MAXSIMD_HTTP_HOST: z.string().default('127.0.0.1').describe('Address the API listens on.'),
  MAXSIMD_HTTP_PORT: wholeNumber(0, 65535)
    .default(8080)
    .describe('Port of the API; 0 = any free port (printed).'),
  MAXSIMD_HTTP_CONNECTIONS_MAX: wholeNumber(1, 1_000_000)
    .default(4_000)
    .describe('Open connections of the API, idle ones included; further ones are closed at once.'),
  MAXSIMD_HTTP_KEEP_ALIVE_MS: wholeNumber(1_000, 86_400_000)
    .default(75_000)
    .describe(
      'How long the API keeps an idle connection. It must be longer than a balancer before it keeps its own, or some requests are answered 502.',
    ),
  MAXSIMD_METRICS_HOST: z.string().default('127.0.0.1').describe('Address of the metrics listener.'),
  MAXSIMD_METRICS_PORT: wordOrNumber('auto', -1, 65535)
    .default('auto')
    .describe(
      `Port of \`/metrics\`; auto = ${usualMetricsPort}, or any free port where that is in use (printed); 0 = any free port (printed), -1 = off.`,
    ),
  MAXSIMD_ADMIN_HOST: z.string().default('127.0.0.1').describe('Address of the admin API.'),
  MAXSIMD_ADMIN_PORT: wholeNumber(-1, 65535)
    .default(-1)
    .describe('Port of the admin API (`/admin/v1`); 0 = any free port (printed), -1 = off.'),
  MAXSIMD_ADMIN_KEY_FILE: z
    .string()
    .default('')
    .describe(
      'File with the keys of operators, one in each line, of 32 characters or more: `openssl rand -hex 32 > FILE`.',
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
      'Catalog that several nodes share, `postgres://user:password@host:port/database`, with TLS by `sslmode`, `sslrootcert`, `sslcert` and `sslkey`; empty = the data directory. Goes with the next two: all three or none.',
    ),
  MAXSIMD_BLOBS_URL: fitting('must be s3://bucket/prefix', (url) => /^(s3:\/\/[^/]+(\/.*)?)?$/.test(url))
    .default('')
    .describe(
      'Where several nodes keep segments, `s3://bucket/prefix`; endpoint, region and credentials by the AWS variables, an authority of your own by NODE_EXTRA_CA_CERTS.',
    ),
  MAXSIMD_LIMITER_URL: fitting('must be a URL such as redis://user:password@host:6379', (url) =>
    /^(rediss?:\/\/.+)?$/.test(url),
  )
    .default('')
    .describe(
      'Rate windows and concurrency slots of several nodes, `redis://user:password@host:port`, or `rediss://…` for TLS; an authority of your own by NODE_EXTRA_CA_CERTS.',
    ),
  MAXSIMD_KEY_PEPPER_FILE: z
    .string()
    .default('')
    .describe(
      'Secret that API keys are hashed with, 32 bytes, the same on every node that shares a catalog.',
    ),
  MAXSIMD_CACHE_MIB: wholeNumber(64, 1 << 30)
    .default(65_536)
    .describe('Local copies of segments that a node keeps in its data directory.'),
  MAXSIMD_REPLACED_KEPT_SECONDS: wholeNumber(3_600, 72_000)
    .default(3_600)
    .describe(
      'How long objects that merges have replaced are kept: a catalog may be restored to a moment so far back.',
    ),
  MAXSIMD_MODELS_DIR: z
    .string()
    .default('')
    .describe(
      'Folder of installed models, `<name>/<version>/`, beside those in the package; empty = `models` in the data directory.',
    ),
  MAXSIMD_MODEL: z
    .string()
    .default('minilm-l6-maxsim')
    .describe(
      'Default model of new indexes, always loaded: `<name>` (its newest version) or `<name>/<version>`.',
    ),
  MAXSIMD_MODELS_LOADED: wholeNumber(1, 64)
    .default(3)
    .describe('Model versions that local encoders hold at a time, the default model included.'),
  MAXSIMD_MODEL_IDLE_SECONDS: wholeNumber(1, 31_536_000)
    .default(600)
    .describe('How long a model version that is not the default stays loaded without use.'),
  MAXSIMD_ENCODERS: list
    .default([])
    .describe('Comma-separated encoder addresses (`host:port` or `unix:/path`); empty = spawn local ones.'),
  MAXSIMD_ENCODER_PROCESSES: wholeNumber(1, 64)
    .default(1)
    .describe('Local encoder processes of each loaded model version.'),
  MAXSIMD_ENCODER_THREADS: wholeNumber(0, 256)
    .default(0)
    .describe('Inference threads of a local encoder; 0 = one per core.'),
  MAXSIMD_ENCODER_MEMORY_MIB: wholeNumber(0, 1 << 24)
    .default(0)
    .describe(
      'Resident memory at which a local encoder is restarted; 0 = 60% of the memory, shared by the processes of all loaded models.',
    ),
  MAXSIMD_ENCODER_WAIT_MS: wholeNumber(0, 60_000)
    .default(5_000)
    .describe(
      'How long a request waits, within its deadline, for an encoder that is out (restarting) before it gets 503.',
    ),
  MAXSIMD_ENCODER_TLS_CA_FILE: z
    .string()
    .default('')
    .describe('CA of remote encoders; with it, connections to them speak TLS.'),
  MAXSIMD_ENCODER_TLS_CERT_FILE: z
    .string()
    .default('')
    .describe('Client certificate shown to remote encoders (mutual TLS).'),
  MAXSIMD_ENCODER_TLS_KEY_FILE: z.string().default('').describe('Key of the client certificate.'),
  MAXSIMD_PROVIDER: oneOf('auto', 'cpu', 'cuda')
    .default('auto')
    .describe('ONNX Runtime execution provider; an explicit `cuda` that cannot load is an error.'),
  MAXSIMD_DEVICES: fitting('must be numbers of GPUs with commas between them, as in 0,1', (text) =>
    /^(\d{1,3}(,\d{1,3})*)?$/.test(text),
  )
    .transform((text) => (text === '' ? [] : text.split(',').map(Number)))
    .default([])
    .describe('Comma-separated GPUs of the local encoder processes, one each in turn; empty = the first.'),
  MAXSIMD_BATCH_TOKENS: wholeNumber(0, 1 << 20)
    .default(0)
    .describe(
      'Padded tokens of a document batch; 0 = 256 on a CPU, 16,384 on a GPU (`npm run bench -- gpu` prints what to set).',
    ),
  MAXSIMD_ENGINE_THREADS: wholeNumber(0, 256)
    .default(0)
    .describe('Threads of the search engine; 0 = one per core.'),
  MAXSIMD_KERNEL: oneOf('auto', 'scalar', 'avx2', 'avxvnni', 'avx512vnni', 'amx', 'neon')
    .default('auto')
    .describe('MaxSim kernel; a forced one this machine lacks is an error.'),
  MAXSIMD_ENGINE_DEVICE: fitting('must be cpu, or cuda: and the number of a GPU, as in cuda:0', (device) =>
    /^(cpu|cuda:\d{1,3})$/.test(device),
  )
    .default('cpu')
    .describe(
      'GPU that scores whole segments exactly, `cuda:0`; `cpu` = none. What is not in its memory is searched on the CPU.',
    ),
  MAXSIMD_ENGINE_DEVICE_MIB: wholeNumber(0, 1 << 24)
    .default(0)
    .describe('Memory of that GPU for token matrices; 0 = half of what it has.'),
  MAXSIMD_ENGINE_DEVICE_LIBRARY: z
    .string()
    .default('')
    .describe('What drives that GPU; empty = what `npm run cuda:engine` builds.'),
  MAXSIMD_MEMORY_MIB: wholeNumber(0, 1 << 24)
    .default(0)
    .describe(
      'Memory that the engine keeps for all indexes: directories, codebooks, builds and, as far as there is room, codes; 0 = a third of the memory.',
    ),
  MAXSIMD_EXACT_TOKEN_VECTORS: wholeNumber(0, 2 ** 31)
    .default(0)
    .describe('Token vectors one search may scan exactly; 0 = measured for 2 ms.'),
  MAXSIMD_SEGMENT_TOKEN_VECTORS: wholeNumber(64, 2 ** 26)
    .default(131_072)
    .describe('Token vectors at which a segment is sealed.'),
  MAXSIMD_TLS_CERT_FILE: z
    .string()
    .default('')
    .describe('Certificate chain (PEM); with the key file, the API speaks HTTPS.'),
  MAXSIMD_TLS_KEY_FILE: z.string().default('').describe('Private key (PEM).'),
  MAXSIMD_ALLOW_PLAIN_HTTP: flag
    .default(false)
    .describe('Allow a non-loopback address without TLS (behind a proxy).'),
  MAXSIMD_ALLOW_PLAIN_METRICS: flag
    .default(false)
    .describe('Allow a non-loopback address of the metrics listener, which has neither TLS nor keys.'),
  MAXSIMD_ALLOW_PLAIN_ENCODERS: flag
    .default(false)
    .describe('Allow non-loopback addresses of encoders without TLS (in a network of your own).'),
  MAXSIMD_TRUST_PROXY: flag.default(false).describe('Believe `X-Forwarded-*` headers.'),
  MAXSIMD_TRACES_URL: fitting(
    'must be a URL such as http://host:4318/v1/traces',
    (url) => url === '' || (/^https?:\/\/./.test(url) && URL.canParse(url)),
  )
    .default('')
    .describe(
      'Where traces go, by OTLP over HTTP: the whole address, `http://host:4318/v1/traces`; empty = nowhere. Headers, compression and the like by the standard `OTEL_EXPORTER_OTLP_` variables.',
    ),
  MAXSIMD_TRACES_SHARE: numberIn(0, 1)
    .default(1)
    .describe('Share of requests that are traced, 0 to 1; a caller’s `traceparent` decides for its own.'),
  MAXSIMD_CONSOLE: flag
    .default(true)
    .describe('Serve a page at `/console` where people look at their indexes, with an API key.'),
  MAXSIMD_LOG_LEVEL: oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent')
    .default('info')
    .describe('Log level (structured, on standard error).'),
  MAXSIMD_TIMEOUT_SEARCH_MS: wholeNumber(1, 3_600_000)
    .default(10_000)
    .describe('Deadline of search and score requests.'),
  MAXSIMD_TIMEOUT_UPSERT_MS: wholeNumber(1, 3_600_000)
    .default(120_000)
    .describe('Deadline of upsert requests; past it 503 and nothing stored.'),
  MAXSIMD_DRAIN_MS: wholeNumber(0, 600_000)
    .default(120_000)
    .describe('How long SIGTERM waits for requests in flight; the default is as long as an upsert may take.'),
} as const;

const schema = z.strictObject(configShape);

export type Config = Readonly<z.output<typeof schema>>;

/** Variables of the command line itself; `serve` ignores them. */
const commandLineVariables = [
  'MAXSIMD_URL',
  'MAXSIMD_API_KEY',
  'MAXSIMD_ADMIN_URL',
  'MAXSIMD_ADMIN_KEY',
] as const;

/**
 * What Kubernetes puts into every pod for each Service of the namespace: a Service called `maxsimd` has `MAXSIMD_PORT`
 * and six more. They are no settings.
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

/** Variables of a certificate and of its key. */
const certificates = [
  ['MAXSIMD_TLS_CERT_FILE', 'MAXSIMD_TLS_KEY_FILE'],
  ['MAXSIMD_ENCODER_TLS_CERT_FILE', 'MAXSIMD_ENCODER_TLS_KEY_FILE'],
] as const;

export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/**
 * Parses the `MAXSIMD_*` variables of an environment. Unknown ones and bad values are `ConfigError`s that
 * name the variable.
 */
export function parseConfig(environment: Readonly<Record<string, string | undefined>>): Config {
  const ignored = new Set<string>([...commandLineVariables, ...serviceLinksIn(environment)]);
  const own = Object.fromEntries(
    Object.entries(environment).filter(
      ([name, value]) => name.startsWith(prefix) && value !== undefined && !ignored.has(name),
    ),
  );
  const result = schema.safeParse(own);
  if (!result.success) {
    const lines = result.error.issues.flatMap((issue) =>
      issue.code === 'unrecognized_keys'
        ? issue.keys.map(unknownVariable)
        : [`${issue.path.join('.')} ${issue.message}`],
    );
    throw new ConfigError(`bad configuration: ${lines.join('; ')}`);
  }
  const config = result.data;
  for (const [certificate, key] of certificates) {
    if ((config[certificate] === '') !== (config[key] === '')) {
      throw new ConfigError(`bad configuration: ${certificate} and ${key} go together`);
    }
  }
  if (config.MAXSIMD_ADMIN_PORT !== -1 && config.MAXSIMD_ADMIN_KEY_FILE === '') {
    throw new ConfigError('bad configuration: MAXSIMD_ADMIN_PORT needs MAXSIMD_ADMIN_KEY_FILE');
  }
  if (config.MAXSIMD_ENCODER_TLS_CERT_FILE !== '' && config.MAXSIMD_ENCODER_TLS_CA_FILE === '') {
    throw new ConfigError(
      'bad configuration: MAXSIMD_ENCODER_TLS_CERT_FILE is for TLS connections, which need MAXSIMD_ENCODER_TLS_CA_FILE',
    );
  }
  const shared = [config.MAXSIMD_CATALOG_URL, config.MAXSIMD_BLOBS_URL, config.MAXSIMD_LIMITER_URL];
  if (new Set(shared.map((url) => url === '')).size > 1) {
    throw new ConfigError(
      'bad configuration: MAXSIMD_CATALOG_URL, MAXSIMD_BLOBS_URL and MAXSIMD_LIMITER_URL go together: all three or none',
    );
  }
  if ((config.MAXSIMD_CATALOG_URL === '') !== (config.MAXSIMD_KEY_PEPPER_FILE === '')) {
    throw new ConfigError(
      'bad configuration: MAXSIMD_KEY_PEPPER_FILE is for MAXSIMD_CATALOG_URL, which needs it',
    );
  }
  return Object.freeze(config);
}

function unknownVariable(name: string): string {
  const known = [...Object.keys(configShape), ...commandLineVariables];
  const near = nearestName(
    name.slice(prefix.length),
    known.map((each) => each.slice(prefix.length)),
  );
  return `${name} is not a variable of maxsimd${near === undefined ? '' : ` (did you mean ${prefix}${near}?)`}`;
}

/** Whether this process shares its catalog with other nodes. */
export function isClustered(config: Pick<Config, 'MAXSIMD_CATALOG_URL'>): boolean {
  return config.MAXSIMD_CATALOG_URL !== '';
}

/** Folders of installed models: the one that takes new ones, and the one in the package. */
export function modelFoldersOf(
  config: Pick<Config, 'MAXSIMD_MODELS_DIR' | 'MAXSIMD_DATA_DIR'>,
): readonly [string, string] {
  const own = config.MAXSIMD_MODELS_DIR || path.join(config.MAXSIMD_DATA_DIR, 'models');
  return [path.resolve(own), shippedModels()];
}

/** Rows of the README's configuration table. */
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

/** The pepper of every node; its absence is no reason to make one, as on a data directory of one's own. */
export async function readPepper(file: string): Promise<Uint8Array> {
  const pepper = await readFile(file).catch((error: unknown) => {
    throw new ConfigError(`MAXSIMD_KEY_PEPPER_FILE: ${(error as Error).message}`);
  });
  if (pepper.length === pepperBytes) return pepper;
  throw new ConfigError(`MAXSIMD_KEY_PEPPER_FILE: ${file} must hold ${pepperBytes} bytes`);
}
