/** The command line of an encoder process. */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { isLocalAddress } from '../../loopback.ts';

const integer = (minimum: number, maximum: number) => z.coerce.number().int().min(minimum).max(maximum);

const schema = z
  .strictObject({
    listen: z.string().min(1),
    'model-dir': z.array(z.string().min(1)).min(1),
    provider: z.enum(['auto', 'cpu', 'cuda']).default('auto'),
    device: integer(0, 1024).default(0),
    /** 0 = one per core. */
    threads: integer(0, 1024).default(0),
    /** Worker threads that share the threads; 0 = the best known for the provider. */
    workers: integer(0, 64).default(0),
    /** Padded tokens of a document batch; 0 = the best known for the provider. */
    'batch-tokens': integer(0, 1 << 20).default(0),
    'query-batch-tokens': integer(0, 1 << 20).default(0),
    'queue-tokens-max': integer(1, 2 ** 31).default(6_000_000),
    'queue-requests-max': integer(1, 1 << 20).default(1024),
    'stuck-ms': integer(100, 3_600_000).default(60_000),
    'tls-cert': z.string().default(''),
    'tls-key': z.string().default(''),
    /** With it, clients must show a certificate of this authority. */
    'tls-client-ca': z.string().default(''),
    /** Listen without TLS where other machines reach it. */
    'allow-plain': z.boolean().default(false),
    'log-level': z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
  })
  .refine((given) => (given['tls-cert'] === '') === (given['tls-key'] === ''), {
    error: '--tls-cert and --tls-key go together',
  })
  .refine((given) => given['tls-client-ca'] === '' || given['tls-cert'] !== '', {
    error: '--tls-client-ca needs --tls-cert and --tls-key',
  })
  // Texts must not cross a network in the clear by accident.
  .refine((given) => given['tls-cert'] !== '' || given['allow-plain'] || isLocalAddress(given.listen), {
    error:
      '--listen: not a loopback address; give --tls-cert and --tls-key, or in a network of your own --allow-plain',
  });

export type EncoderArguments = z.output<typeof schema>;

/** Parses the arguments after the program's name; throws an `Error` fit to print. */
export function parseEncoderArguments(argv: readonly string[]): EncoderArguments {
  const names = Object.keys(schema.shape);
  const { values } = parseArgs({
    args: [...argv],
    options: Object.fromEntries(
      names.map((name) => [
        name,
        { type: name === 'allow-plain' ? 'boolean' : 'string', multiple: name === 'model-dir' },
      ]),
    ),
  });
  const result = schema.safeParse(values);
  if (!result.success) throw new Error(`bad arguments\n${z.prettifyError(result.error)}`);
  return result.data;
}

/** Threads of inference: what was asked for, or one per core. */
export function inferenceThreads({ threads }: EncoderArguments): number {
  return threads === 0 ? availableParallelism() : threads;
}
