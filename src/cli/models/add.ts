/** `maxsimd models add`: checks an export and installs it as a model version, whole or not at all. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { copyFile, mkdir, mkdtemp, rename, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { findInstalled, installedModels } from '../../encoder/model/installed-models.ts';
import { openModelDirectory } from '../../encoder/model/model-directory.ts';
import type { ServedModel } from '../../encoder/model/served-model.ts';
import { inputError, messageOf } from '../failure.ts';
import { fields, type CommandResult } from '../output.ts';
import { bestTenFound, type ProgressTo, readSampleTexts, type SampleTexts } from './best-ten.ts';
import { goldenRun } from './golden-run.ts';
import { type ModelSource, readModelSource } from './model-source.ts';

export interface AddOptions {
  readonly name?: string;
  readonly version?: string;
  /** 1, 2, 4 or 8; absent = as the export says, or 8. */
  readonly rowBits?: number;
  /** A file with the texts that few bits are compared with f32 on. */
  readonly texts?: string;
}

/** A name that fits into a path, a header and `MAXSIMD_MODEL`. */
const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

/** Installs the model in the first of the folders. */
export async function addModel(
  folders: readonly [string, string],
  given: string,
  options: AddOptions,
  progressTo: ProgressTo,
): Promise<CommandResult> {
  const source = withRowBits(await readModelSource(path.resolve(given)), options.rowBits);
  const texts = await textsFor(source, options.texts);
  const { name, version } = await namesFor(folders, source, options);
  const [folder] = folders;
  await mkdir(folder, { recursive: true });
  // The folder is hidden, so that no server loads the model before it is complete.
  const staging = await mkdtemp(path.join(folder, '.adding-'));
  try {
    const staged = path.join(staging, name, version);
    await mkdir(staged, { recursive: true });
    await copyFiles(source, staged);
    const write = async (manifest: object): Promise<void> =>
      writeFile(
        path.join(staged, 'manifest.json'),
        `${JSON.stringify({ ...manifest, name, version }, undefined, 2)}\n`,
      );
    // Opening the model checks the checksums and golden values of its manifest.
    if (source.manifest !== undefined) await write(source.manifest);
    const { model, golden } = await checked(staged);
    if (source.manifest === undefined) {
      await write({ dim: model.dim, files: await checksums(staged, source), golden });
    }
    await openModelDirectory(staged);
    const bestTen = texts && {
      found: await bestTenFound(model, texts, progressTo),
      passages: texts.passages.length,
      queries: texts.queries.length,
    };
    const directory = path.join(folder, name, version);
    await mkdir(path.dirname(directory), { recursive: true });
    await rename(staged, directory);
    const notes = [...source.notes, ...skipNotes(model, source)];
    return report(model, { name, version, directory, notes, bestTen });
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

function withRowBits(source: ModelSource, rowBits: number | undefined): ModelSource {
  if (rowBits === undefined) return source;
  if (source.manifest !== undefined) {
    throw inputError(
      `--row-bits: ${source.directory} has a manifest, and its rows keep their ${rowBitsOf(source)} bits; give the export that it was made of`,
    );
  }
  const own = source.config['maxsimd'] as object | undefined;
  return { ...source, config: { ...source.config, maxsimd: { ...own, row_bits: rowBits } } };
}

function rowBitsOf({ config }: ModelSource): number {
  return (config['maxsimd'] as { readonly row_bits?: number } | undefined)?.row_bits ?? 8;
}

/** The texts that few bits are compared with f32 on. Rows of 8 bits are not compared. */
async function textsFor(source: ModelSource, file: string | undefined): Promise<SampleTexts | undefined> {
  if (rowBitsOf(source) < 8) return readSampleTexts(file);
  if (file === undefined) return undefined;
  throw inputError('--texts needs rows of fewer than 8 bits: add --row-bits 1, 2 or 4');
}

async function namesFor(
  folders: readonly string[],
  { directory, manifest }: ModelSource,
  options: AddOptions,
): Promise<{ readonly name: string; readonly version: string }> {
  const { models } = await installedModels(folders);
  const name = options.name ?? manifest?.name ?? path.basename(directory);
  const newest = findInstalled(models, { name })?.version;
  const next = newest === undefined ? '1' : String(Number(newest) + 1);
  const version = options.version ?? manifest?.version ?? next;
  if (version === 'NaN')
    throw inputError(`${name} has the version ${newest}, so choose the version of this one with --version`);
  for (const [option, value] of Object.entries({ name, version })) {
    if (!namePattern.test(value))
      throw inputError(`--${option}: ${value} is not made of letters, digits, dots, dashes and underscores`);
  }
  const taken = findInstalled(models, { name, version });
  if (taken !== undefined) {
    throw inputError(
      `${name} version ${version} is installed in ${taken.directory}, and a version never changes`,
    );
  }
  return { name, version };
}

async function copyFiles({ directory, files, config }: ModelSource, staged: string): Promise<void> {
  for (const { from, to } of files) {
    try {
      await mkdir(path.dirname(path.join(staged, to)), { recursive: true });
      await copyFile(path.join(directory, from), path.join(staged, to));
    } catch (error) {
      throw inputError(`cannot copy ${path.join(directory, from)}: ${messageOf(error)}`, error);
    }
  }
  const own = path.join(staged, 'onnx_config.json');
  if (!files.some(({ to }) => to === 'onnx_config.json')) {
    await writeFile(own, `${JSON.stringify(config, undefined, 2)}\n`);
  }
}

/** Loads the model, and throws unless the service can serve it. */
async function checked(staged: string): ReturnType<typeof goldenRun> {
  try {
    const { config, tokenizer } = await openModelDirectory(staged);
    const { model, golden } = await goldenRun(staged);
    for (const kind of ['query', 'document'] as const) {
      const problem = prefixProblem(tokenizer, model, config[`${kind}_prefix`], config[`${kind}_prefix_id`]);
      if (problem !== undefined) throw inputError(problem);
    }
    return { model, golden };
  } catch (error) {
    throw inputError(messageOf(error).replaceAll(`${staged}${path.sep}`, ''), error);
  }
}

/** A prefix with an id is one token. A prefix without an id may be several tokens, which the tokenizer must know. */
function prefixProblem(
  tokenizer: Readonly<Record<string, unknown>>,
  model: ServedModel,
  prefix: string | null | undefined,
  id: number | null | undefined,
): string | undefined {
  if (prefix === undefined || prefix === null || prefix === '') return undefined;
  const quoted = JSON.stringify(prefix);
  if (id === undefined || id === null) {
    const { ids } = model.tokenizer.prompt(prefix);
    const isKnown = ids.every((each) => each !== model.tokenizer.unknownId);
    return isKnown ? undefined : `the tokenizer does not know all of the prefix ${quoted}`;
  }
  const inVocabulary = idOf(tokenizer, model, prefix);
  if (inVocabulary === id) return undefined;
  return `the prefix ${quoted} is token ${id} in the configuration and ${inVocabulary ?? 'none'} in the tokenizer`;
}

/** Added tokens are not in the vocabulary that splits texts. */
function idOf(
  tokenizer: Readonly<Record<string, unknown>>,
  model: ServedModel,
  token: string,
): number | undefined {
  const added = (tokenizer['added_tokens'] ?? []) as readonly {
    readonly content: string;
    readonly id: number;
  }[];
  const found = added.find(({ content }) => content === token || content === token.trim());
  return found?.id ?? model.tokenizer.idOf(token) ?? model.tokenizer.idOf(token.trim());
}

/** Notes the words of the skip-list that are not one token. */
function skipNotes({ tokenizer }: ServedModel, { config }: ModelSource): readonly string[] {
  const words = (config['skiplist_words'] ?? []) as readonly string[];
  const unknown = words.filter((word) => tokenizer.idOf(word) === undefined);
  if (unknown.length === 0) return [];
  const consequence =
    tokenizer.unknownId === undefined
      ? 'they skip nothing'
      : 'unknown tokens of documents yield no vectors instead, as in PyLate';
  return [`not single tokens, though on the skip-list: ${unknown.join(' ')}; ${consequence}`];
}

async function checksums(staged: string, { files }: ModelSource): Promise<Record<string, object>> {
  const names = new Set([...files.map(({ to }) => to), 'onnx_config.json']);
  const entries: Record<string, object> = {};
  for (const name of names) {
    const file = path.join(staged, name);
    const hash = createHash('sha256');
    await pipeline(createReadStream(file), hash);
    entries[name] = { sha256: hash.digest('hex'), bytes: (await stat(file)).size };
  }
  return entries;
}

interface Installed {
  readonly name: string;
  readonly version: string;
  readonly directory: string;
  readonly notes: readonly string[];
  /** How many of the best ten by f32 rows are found, if rows have few bits. */
  readonly bestTen:
    | { readonly found: number; readonly passages: number; readonly queries: number }
    | undefined;
}

function report(model: ServedModel, { name, version, directory, notes, bestTen }: Installed): CommandResult {
  const { rules, dim, rowBits, windowTokensMax } = model;
  const expansion =
    rules.expansion === undefined ? 'not expanded' : `expanded to ${rules.expansion.positions} tokens`;
  const prefixTokens = (head: readonly number[]): string => {
    const tokens = head.length - model.tokenizer.head.length;
    return tokens === 1 ? '1 token' : `${tokens} tokens`;
  };
  const pairs: [string, string][] = [
    ['model', name],
    ['version', version],
    ['directory', directory],
    ['dimensions', `${dim} of ${bitsOf(rowBits)}`],
    ['queries', `at most ${rules.queryPositionsMax} tokens, ${expansion}`],
    [
      'prefixes',
      `${prefixTokens(rules.queryHead)} for queries, ${prefixTokens(rules.documentHead)} for documents`,
    ],
    [
      'documents',
      `windows of at most ${windowTokensMax} tokens, ${rules.skipIds.size} tokens on the skip-list`,
    ],
    ['checked', 'graph, tokenizer, prefixes, length of vectors, independence of texts in a batch'],
  ];
  return {
    document: {
      name,
      version,
      directory,
      dim,
      row_bits: rowBits,
      window_tokens_max: windowTokensMax,
      best_ten: bestTen,
      notes,
    },
    text: [
      fields(pairs),
      ...(bestTen === undefined ? [] : [bestTenLine(rowBits, bestTen)]),
      ...notes.map((note) => `note: ${note}`),
      `A running server serves it: create an index with "model": "${name}".`,
    ].join('\n'),
  };
}

function bestTenLine(
  rowBits: number,
  { found, passages, queries }: NonNullable<Installed['bestTen']>,
): string {
  const texts = `${passages.toLocaleString('en')} passages, ${queries} queries`;
  return `Of the best ten passages by f32 rows, ${found.toFixed(1)} are found with ${bitsOf(rowBits)} (${texts}).`;
}

function bitsOf(rowBits: number): string {
  return rowBits === 1 ? '1 bit' : `${rowBits} bits`;
}
