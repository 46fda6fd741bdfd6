/** The command line of an encoder process. */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { wordsOf } from '../../input/issue-words.ts';
import { isLocalAddress } from '../../loopback.ts';
import { nearestName, nonEmpty, oneOf, wholeNumber } from '../../input/settings.ts';

const schema = z
  .strictObject({
    listen: nonEmpty,
    'model-dir': z.array(nonEmpty).min(1),
    /** Left out, with the reason in the log, if it cannot be loaded. */
    'optional-model-dir': z.array(nonEmpty).default([]),
    provider: oneOf('auto', 'cpu', 'cuda').default('auto'),
    device: wholeNumber(0, 1024).default(0),
    /** 0 = one per core. */
    threads: wholeNumber(0, 1024).default(0),
    /** Workers, which share the threads. 0 = the best number for the provider. */
    workers: wholeNumber(0, 64).default(0),
    /** Padded tokens of a document batch. 0 = the best number for the provider. */
    'batch-tokens': wholeNumber(0, 1 << 20).default(0),
    'query-batch-tokens': wholeNumber(0, 1 << 20).default(0),
    'queue-tokens-max': wholeNumber(1, 2 ** 31).default(6_000_000),
    'queue-requests-max': wholeNumber(1, 1 << 20).default(1024),
    'stuck-ms': wholeNumber(100, 3_600_000).default(60_000),
    'tls-cert': z.string().default(''),
    'tls-key': z.string().default(''),
    /** If it is given, clients must show a certificate of this authority. */
    'tls-client-ca': z.string().default(''),
    /** Allows an address that other machines reach, without TLS. */
    'allow-plain': z.boolean().default(false),
    'log-level': oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent').default('info'),
  })
  .refine((given) => (given['tls-cert'] === '') === (given['tls-key'] === ''), {
    error: '--tls-cert and --tls-key go together',
  })
  .refine((given) => given['tls-client-ca'] === '' || given['tls-cert'] !== '', {
    error: '--tls-client-ca needs --tls-cert and --tls-key',
  })
  // Texts must not cross a network unencrypted by accident.
  .refine((given) => given['tls-cert'] !== '' || given['allow-plain'] || isLocalAddress(given.listen), {
    error:
      '--listen: not a loopback address; give --tls-cert and --tls-key, or in a network of your own --allow-plain',
  });

export type EncoderArguments = z.output<typeof schema>;

/** Parses the arguments after the name of the program. Throws an `ArgumentError`. */
export function parseEncoderArguments(argv: readonly string[]): EncoderArguments {
  const result = schema.safeParse(valuesOf(argv));
  if (result.success) return result.data;
  const problems = result.error.issues.map((issue) =>
    issue.path.length === 0 ? issue.message : `--${String(issue.path[0])} ${wordsOf(issue)}`,
  );
  throw new ArgumentError(problems.join('; '));
}

/** Its message is printed to the user. */
export class ArgumentError extends Error {
  override readonly name = 'ArgumentError';
}

function valuesOf(argv: readonly string[]): object {
  const names = Object.keys(schema.shape);
  const options = Object.fromEntries(
    names.map((name) => [
      name,
      {
        type: name === 'allow-plain' ? ('boolean' as const) : ('string' as const),
        multiple: name.endsWith('model-dir'),
      },
    ]),
  );
  const { values, tokens } = parseArgs({ args: [...argv], options, strict: false, tokens: true });
  for (const token of tokens) {
    if (token.kind === 'positional') throw new ArgumentError(`${token.value} is not an option`);
    if (token.kind !== 'option') continue;
    const option = options[token.name];
    const isMissing = token.value === undefined || (!token.inlineValue && token.value.startsWith('-'));
    if (option?.type === 'string' && isMissing) throw new ArgumentError(`${token.rawName} needs a value`);
    if (option?.type === 'boolean' && token.value !== undefined)
      throw new ArgumentError(`${token.rawName} takes no value`);
    if (option !== undefined) continue;
    const near = nearestName(token.name, names);
    throw new ArgumentError(
      `${token.rawName} is not an option${near === undefined ? '' : ` (did you mean --${near}?)`}`,
    );
  }
  return values;
}

/** Threads of inference: the given number, or one per core. */
export function inferenceThreads({ threads }: EncoderArguments): number {
  return threads === 0 ? availableParallelism() : threads;
}
