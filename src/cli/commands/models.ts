/** `maxsimd models`: its words. */
import { Option, type Command } from 'commander';
import type { ProgramEnvironment } from './environment.ts';
import { jsonOption, nonBlank } from './options.ts';

interface AddWords {
  readonly name?: string;
  readonly version?: string;
  readonly rowBits?: string;
  readonly poolFactor?: string;
  readonly texts?: string;
  readonly beir?: string;
}

type Folders = () => Promise<readonly [string, string, ...string[]]>;

export function addModels(program: Command, environment: ProgramEnvironment): void {
  const models = program.command('models').description('models on this machine');
  const folders: Folders = async () => {
    const { modelFoldersOf } = await import('../../app/config.ts');
    return modelFoldersOf(environment.config());
  };
  models
    .command('list')
    .description('show the installed models, and those that can be had')
    .addOption(jsonOption())
    .action(async () => {
      const { listModels } = await import('../models/list.ts');
      environment.report(await listModels(await folders()));
    });
  models
    .command('verify')
    .description('compare every file with the checksums of its manifest')
    .addOption(jsonOption())
    .action(async () => {
      const { verifyModels } = await import('../models/list.ts');
      environment.report(await verifyModels(await folders()));
    });
  models
    .command('build')
    .description('build a model that does not come with the program')
    .argument('<name>', 'name of a recipe, with or without -maxsim, such as e5-small-multilingual')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      '\nRuns models/build.sh, which is in a checkout only and needs Python 3.11. It fetches pinned packages, checks them, and writes\n' +
        'models/NAME/VERSION. Elsewhere the command names the package with the model.',
    )
    .action(async (name: string) => {
      const { buildModel } = await import('../models/build.ts');
      const { buildScript } = await import('../../process/installation.ts');
      const how = { script: buildScript(), signal: environment.interruption() };
      environment.report(await buildModel(name, how));
    });
  addAdd(models, environment, folders);
}

/** The command `models add`. */
function addAdd(models: Command, environment: ProgramEnvironment, folders: Folders): void {
  models
    .command('add')
    .description('check an export and install it beside the other models')
    .argument(
      '<directory|file>',
      'a ColBERT export or an embedding model with its ONNX graph, or the graph in it',
    )
    .option('--name <name>', 'name of the model (default: name of the directory)')
    .option('--version <version>', 'version of the model (default: 1, or the one after the newest)')
    .addOption(
      new Option(
        '--row-bits <bits>',
        'bits of a stored component (default: as the export says, or 8; of wide embedding models 2)',
      ).choices(['1', '2', '4', '8']),
    )
    .addOption(
      new Option(
        '--pool-factor <n>',
        'token vectors of a chunk that one row is stored for (default: as the export says, or 1; of wide embedding models 3)',
      ).choices(['1', '2', '3', '4', '5', '6', '7', '8']),
    )
    .option('--texts <file>', 'texts of yours, which stored rows are compared with f32 on')
    .option('--beir <directory>', 'measure nDCG@10 over the judged queries of this directory', nonBlank)
    .addOption(jsonOption())
    .addHelpText(
      'after',
      '\nThe model is installed in MAXSIMD_MODELS_DIR (default: models in the data directory), and a running server finds it\n' +
        'there. The command runs the model first. Graph, tokenizer and prefixes must fit together. The vectors of a text must\n' +
        'have length 1 and must not depend on other texts.\n\n' +
        'With fewer than 8 bits, or pooled rows, the command encodes 100 queries and 1,000 passages that come with it, and prints\n' +
        'how many of the best ten passages by f32 rows are found. Codes of few bits are refined on the passages. --texts names a\n' +
        'file with your own, one a line: 100 queries, then 1,000 to 10,000 passages. It may be gzipped (.gz).\n\n' +
        '--beir names a directory in the layout of BEIR (see maxsimd eval --help). Once the model is installed, the command encodes\n' +
        'its documents, and prints nDCG@10 of late interaction, with stored rows and with f32 rows. For an embedding model it also\n' +
        'prints that of its single vector (by 1_Pooling/config.json: mean or cls; else mean), by the cosine. All rank the same\n' +
        'chunks of at most 256 tokens. f32 rows rank the best 100 chunks by stored rows. The model stays installed, whatever the numbers\n' +
        'say. At most 50,000 chunks, and queries of 50,000 tokens together; maxsimd eval measures larger collections.',
    )
    .action(async (given: string, { rowBits, poolFactor, ...options }: AddWords) => {
      const { addModel } = await import('../models/add.ts');
      const numbers = {
        ...(rowBits === undefined ? {} : { rowBits: Number(rowBits) }),
        ...(poolFactor === undefined ? {} : { poolFactor: Number(poolFactor) }),
      };
      environment.report(await addModel(await folders(), given, { ...options, ...numbers }, environment));
    });
}
