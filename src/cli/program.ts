/**
 * The words of the command line: commands, arguments, options, help. The one importer of commander. What a
 * command does lies in the module it loads, so that a search does not wait for the server's packages.
 */
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import type { TenantLimits } from '../catalog/contract.ts';
import type { Config } from '../config.ts';
import { endpointOf, type Endpoint } from './api/exchange.ts';
import { withCatalog } from './catalog-access.ts';
import type { CommandResult } from './output.ts';

/** What the entry hands in; nothing below reads the environment. */
export interface ProgramEnvironment {
  readonly version: string;
  /** Parses the environment; a bad one is a `ConfigError`. Only commands that work on this machine ask. */
  readonly config: () => Config;
  readonly url: string | undefined;
  readonly apiKey: string | undefined;
  readonly stdin: NodeJS.ReadStream;
  readonly stderr: NodeJS.WriteStream;
  /** Runs the service until it ends. */
  readonly serve: (config: Config) => Promise<void>;
  /** Told what a command came to. */
  readonly report: (result: CommandResult) => void;
}

const urlDefault = 'http://127.0.0.1:8080';

/** Rejects with a `CommanderError` on bad usage and where help was asked for, already printed. */
export async function runProgram(args: readonly string[], environment: ProgramEnvironment): Promise<void> {
  const program = new Command('maxsimd')
    .description('Multi-tenant, multi-vector (late interaction) retrieval service.')
    .version(environment.version)
    .helpCommand(true)
    .exitOverride()
    // The entry reports usage errors itself, in one place and one form.
    .configureOutput({ outputError: () => {} })
    .addHelpText(
      'after',
      '\nExit codes: 0 done, 1 failed, 2 wrong command line or configuration.\n' +
        'With --json, standard output holds exactly one JSON document; a failure is {"error":{"code","message"}}.\n' +
        'The service and the commands on tenants, keys and models read MAXSIMD_* variables (see docs/reference/configuration.md).',
    );
  addServe(program, environment);
  addTenant(program, environment);
  addKey(program, environment);
  addIndex(program, environment);
  addModels(program, environment);
  addImport(program, environment);
  addSearch(program, environment);
  addEval(program, environment);
  await program.parseAsync([...args], { from: 'user' });
}

/** The words of a usage error; `undefined` when nothing is wrong (help was asked for). */
export function usageProblem(error: CommanderError): string | undefined {
  return error.exitCode === 0 ? undefined : error.message.replace(/^error: /, '').replaceAll('\n', ' ');
}

export { CommanderError };

function addServe(program: Command, environment: ProgramEnvironment): void {
  program
    .command('serve')
    .description('run the service until SIGTERM')
    .action(async () => environment.serve(environment.config()));
}

function addTenant(program: Command, environment: ProgramEnvironment): void {
  const tenant = program.command('tenant').description('tenants of the data directory');
  withLimitOptions(
    tenant
      .command('create')
      .description('make a tenant and its first API key')
      .requiredOption('--name <name>', 'name of the tenant', nonBlank),
  )
    .addOption(jsonOption())
    .action(async (options: LimitOptions & { name: string }) => {
      const { createTenant } = await import('./tenants.ts');
      environment.report(
        await withCatalog(
          environment.config(),
          ({ catalog, newApiKey }) =>
            createTenant(catalog, { name: options.name, limits: limitsOf(options), newApiKey }),
          { create: true },
        ),
      );
    });
  tenant
    .command('list')
    .description('all tenants')
    .addOption(jsonOption())
    .action(async () => {
      const { listTenants } = await import('./tenants.ts');
      environment.report(await withCatalog(environment.config(), ({ catalog }) => listTenants(catalog)));
    });
  for (const [name, suspended] of [
    ['suspend', true],
    ['resume', false],
  ] as const) {
    tenant
      .command(name)
      .description(suspended ? 'refuse all requests of a tenant (403)' : 'lift a suspension')
      .argument('<tenant_id>')
      .addOption(jsonOption())
      .action(async (tenantId: string) => {
        const { setSuspended } = await import('./tenants.ts');
        environment.report(
          await withCatalog(environment.config(), ({ catalog }) =>
            setSuspended(catalog, tenantId, suspended),
          ),
        );
      });
  }
  withLimitOptions(
    tenant
      .command('limits')
      .description('show the limits of a tenant, or change those given')
      .argument('<tenant_id>'),
  )
    .addOption(jsonOption())
    .action(async (tenantId: string, options: LimitOptions) => {
      const { tenantLimits } = await import('./tenants.ts');
      environment.report(
        await withCatalog(environment.config(), ({ catalog }) =>
          tenantLimits(catalog, tenantId, limitsOf(options)),
        ),
      );
    });
  tenant
    .command('delete')
    .description('erase a tenant with everything it stored')
    .argument('<tenant_id>')
    .option('--yes', 'do not ask')
    .addOption(jsonOption())
    .action(async (tenantId: string, options: { yes?: true }) => {
      const { deleteTenant } = await import('./tenants.ts');
      const confirm = await confirmation(options, environment);
      environment.report(
        await withCatalog(environment.config(), ({ catalog, purge }) =>
          deleteTenant(catalog, { tenantId, confirm, purge }),
        ),
      );
    });
}

function addKey(program: Command, environment: ProgramEnvironment): void {
  const key = program.command('key').description('API keys of a tenant; two may live at once, for rotation');
  key
    .command('create')
    .description('make a key; it is shown this once')
    .argument('<tenant_id>')
    .addOption(jsonOption())
    .action(async (tenantId: string) => {
      const { createKey } = await import('./keys.ts');
      environment.report(
        await withCatalog(environment.config(), ({ catalog, newApiKey }) =>
          createKey(catalog, tenantId, newApiKey),
        ),
      );
    });
  key
    .command('list')
    .description('keys of a tenant, revoked ones included')
    .argument('<tenant_id>')
    .addOption(jsonOption())
    .action(async (tenantId: string) => {
      const { listKeys } = await import('./keys.ts');
      environment.report(
        await withCatalog(environment.config(), ({ catalog }) => listKeys(catalog, tenantId)),
      );
    });
  key
    .command('revoke')
    .description('refuse a key from now on (401)')
    .argument('<key_id>')
    .addOption(jsonOption())
    .action(async (keyId: string) => {
      const { revokeKey } = await import('./keys.ts');
      environment.report(await withCatalog(environment.config(), ({ catalog }) => revokeKey(catalog, keyId)));
    });
  key
    .command('reset')
    .description('make every key of every tenant void, also where the key pepper is lost')
    .option('--yes', 'do not ask')
    .addOption(jsonOption())
    .addHelpText('after', '\nRefused while a server uses the data directory.')
    .action(async (options: { yes?: true }) => {
      const { resetAllKeys } = await import('./keys.ts');
      const confirm = await confirmation(options, environment);
      const directory = environment.config().MAXSIMD_DATA_DIR;
      environment.report(await resetAllKeys({ directory, confirm }));
    });
}

/** `--yes`, or a question at the terminal. */
async function confirmation(
  options: { readonly yes?: true },
  environment: ProgramEnvironment,
): Promise<(question: string) => Promise<boolean>> {
  const { askOnTerminal } = await import('./confirm.ts');
  return async (question) =>
    options.yes === true || askOnTerminal(question, environment.stdin, environment.stderr);
}

function addIndex(program: Command, environment: ProgramEnvironment): void {
  const index = program.command('index').description('files of the indexes in the data directory');
  index
    .command('inspect')
    .description('show segments, sizes, waste and what is derived; also beside a running server')
    .argument('[index_id]', 'one index (default: all)')
    .addOption(jsonOption())
    .action(async (indexId: string | undefined) => {
      const [{ withIndexes }, { inspectIndexes }] = await Promise.all([
        import('./index-access.ts'),
        import('./index-inspect.ts'),
      ]);
      environment.report(await withIndexes(environment.config(), indexId, inspectIndexes));
    });
  index
    .command('verify')
    .description('check that the data directory is whole; also beside a running server')
    .argument('[index_id]', 'one index (default: all)')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      '\nReads every byte, also where the service refuses to start. Exit code 1 when anything is missing, foreign or\n' +
        'damaged, with a list of it.',
    )
    .action(async (indexId: string | undefined) => {
      const { verifyIndexes } = await import('./index-verify.ts');
      environment.report(await verifyIndexes(environment.config(), indexId));
    });
  index
    .command('compact')
    .description('merge all segments of an index into one; refused while a server uses the data directory')
    .argument('[index_id]', 'one index (default: all)')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      '\nNeeds as much free space as the live documents take. A server merges by itself: this is for the last\n' +
        'byte, or before a copy. What searches derive from segments is built when the server next opens the index.',
    )
    .action(async (indexId: string | undefined) => {
      const [{ withIndexesAlone }, { compactIndexes }] = await Promise.all([
        import('./index-access.ts'),
        import('./index-compact.ts'),
      ]);
      environment.report(await withIndexesAlone(environment.config(), indexId, compactIndexes));
    });
}

function addModels(program: Command, environment: ProgramEnvironment): void {
  const models = program.command('models').description('models on this machine');
  models
    .command('list')
    .description('names and versions')
    .addOption(jsonOption())
    .action(async () => {
      const { listModels, modelsDirectoryOf } = await import('./models.ts');
      environment.report(await listModels(modelsDirectoryOf(environment.config())));
    });
  models
    .command('verify')
    .description('hold every file against the checksums of its manifest')
    .addOption(jsonOption())
    .action(async () => {
      const { modelsDirectoryOf, verifyModels } = await import('./models.ts');
      environment.report(await verifyModels(modelsDirectoryOf(environment.config())));
    });
}

function addImport(program: Command, environment: ProgramEnvironment): void {
  withServiceOptions(
    program
      .command('import')
      .description('send documents to an index, made if it is missing')
      .argument('<source>', 'FILE.jsonl, FILE.jsonl.gz or a BEIR directory')
      .requiredOption('--index <name>', 'name of the index')
      .option('--concurrency <n>', 'requests at once (default: what the tenant may)', positiveInteger)
      .option('--state <file>', 'where to keep the state of the import (default: beside the input)'),
    180,
  )
    .option('--retry-for <seconds>', 'how long to wait for an unavailable service', positiveNumber, 300)
    .addHelpText(
      'after',
      '\nLines are {"doc_id" | "_id" | "id", "text", "title"?, "metadata"?}; the text sent is title, a space, text.\n' +
        'An import that was cut off goes on where it was when the same command is given again; a changed file starts over.\n' +
        'Ends with the counts of documents done and failed; exit code 1 when any failed.',
    )
    .action(
      async (
        source: string,
        options: ServiceOptions & { index: string; concurrency?: number; state?: string; retryFor: number },
      ) => {
        const { importDocuments } = await import('./import/command.ts');
        environment.report(
          await importDocuments({
            endpoint: endpointFrom(options, environment),
            source,
            indexName: options.index,
            concurrency: options.concurrency,
            stateFile: options.state,
            retryMs: options.retryFor * 1000,
            stderr: environment.stderr,
          }),
        );
      },
    );
}

function addSearch(program: Command, environment: ProgramEnvironment): void {
  withServiceOptions(
    program
      .command('search')
      .description('rank the chunks of an index for a query')
      .argument('<query>')
      .requiredOption('--index <name>', 'name of the index')
      .option('--top-k <n>', 'results', positiveInteger)
      .option('--candidate-k <n>', 'chunks scored exactly', positiveInteger)
      .option('--filter <json>', 'metadata fields that must match, as a JSON object')
      .option('--components', 'show the parts of each score'),
    30,
  ).action(
    async (
      query: string,
      options: ServiceOptions & {
        index: string;
        topK?: number;
        candidateK?: number;
        filter?: string;
        components?: true;
      },
    ) => {
      const { parseFilter, search } = await import('./search.ts');
      environment.report(
        await search({
          endpoint: endpointFrom(options, environment),
          indexName: options.index,
          query,
          topK: options.topK,
          candidateK: options.candidateK,
          filter: options.filter === undefined ? undefined : parseFilter(options.filter),
          components: options.components === true,
          retryMs: 10_000,
        }),
      );
    },
  );
}

function addEval(program: Command, environment: ProgramEnvironment): void {
  withServiceOptions(
    program
      .command('eval')
      .description('measure quality and latency of an index over the queries of a BEIR directory')
      .argument('<directory>', 'with queries.jsonl[.gz] and qrels.tsv or qrels/test.tsv')
      .requiredOption('--index <name>', 'name of the index')
      .option('--candidate-k <n>', 'chunks scored exactly', positiveInteger, 500)
      .option('--concurrency <n>', 'searches at once', positiveInteger, 1),
    30,
  )
    .addHelpText(
      'after',
      '\nnDCG@10 and recall@100 as trec_eval and BEIR compute them: gains are the grades themselves (linear), the ideal\n' +
        'ranking is made of all judged documents. Only queries with judgements are run. A document counts once, at its\n' +
        "best chunk; a query's own document (equal ids) is left out. A search returns at most 100 chunks, so documents\n" +
        'of several chunks leave fewer than 100 documents for recall@100; the report says how many there were.\n' +
        'Latency is that of the request that was answered: waiting for a limit is left out. Percentiles by nearest rank.',
    )
    .action(
      async (
        directory: string,
        options: ServiceOptions & { index: string; candidateK: number; concurrency: number },
      ) => {
        const { evaluate } = await import('./eval.ts');
        environment.report(
          await evaluate({
            endpoint: endpointFrom(options, environment),
            directory,
            indexName: options.index,
            candidateK: options.candidateK,
            concurrency: options.concurrency,
            retryMs: 60_000,
            stderr: environment.stderr,
          }),
        );
      },
    );
}

interface ServiceOptions {
  readonly url?: string;
  readonly key?: string;
  readonly timeout: number;
}

function withServiceOptions(command: Command, timeoutSeconds: number): Command {
  return command
    .option('--url <url>', `address of the service (or MAXSIMD_URL; default ${urlDefault})`)
    .option('--key <key>', 'API key (or MAXSIMD_API_KEY, which other users of the machine cannot see)')
    .option('--timeout <seconds>', 'for one request', positiveNumber, timeoutSeconds)
    .addOption(jsonOption());
}

function endpointFrom(options: ServiceOptions, environment: ProgramEnvironment): Endpoint {
  return endpointOf(
    options.url ?? environment.url ?? urlDefault,
    options.key ?? environment.apiKey,
    options.timeout * 1000,
  );
}

interface LimitOptions {
  readonly requestsPerMinute?: number;
  readonly maxConcurrentRequests?: number;
  readonly inputTokens?: bigint;
  readonly documents?: number;
}

function withLimitOptions(command: Command): Command {
  return command
    .option('--requests-per-minute <n>', 'requests in any 60 s', positiveInteger)
    .option('--max-concurrent-requests <n>', 'requests in flight', positiveInteger)
    .option('--input-tokens <n>', 'input tokens a UTC month', tokenCount)
    .option('--documents <n>', 'stored documents over all indexes', countFromZero);
}

function limitsOf(options: LimitOptions): Partial<TenantLimits> {
  return {
    ...(options.requestsPerMinute === undefined ? {} : { requestsPerMinute: options.requestsPerMinute }),
    ...(options.maxConcurrentRequests === undefined
      ? {}
      : { maxConcurrentRequests: options.maxConcurrentRequests }),
    ...(options.inputTokens === undefined ? {} : { inputTokens: options.inputTokens }),
    ...(options.documents === undefined ? {} : { documents: options.documents }),
  };
}

function jsonOption(): Option {
  return new Option('--json', 'print one JSON document');
}

function countFromZero(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value))
    throw new InvalidArgumentError('Not a whole number.');
  return value;
}

function positiveInteger(text: string): number {
  const value = countFromZero(text);
  if (value < 1) throw new InvalidArgumentError('Must be at least 1.');
  return value;
}

function positiveNumber(text: string): number {
  const value = Number(text);
  if (!/^\d+(\.\d+)?$/.test(text) || value <= 0) throw new InvalidArgumentError('Not a positive number.');
  return value;
}

/** The ledger is 64 bits wide. */
function tokenCount(text: string): bigint {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('Not a whole number.');
  const value = BigInt(text);
  if (value > 2n ** 63n - 1n) throw new InvalidArgumentError('Larger than 2^63 - 1.');
  return value;
}

function nonBlank(text: string): string {
  if (text.trim() === '') throw new InvalidArgumentError('Must not be empty.');
  return text;
}
