/** `maxsimd models add`: checks an export and installs it as a model version, whole or not at all. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { copyFile, mkdtemp, rename, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { makeDirectories } from '../../process/make-directories.ts';
import { findInstalled, installedModels } from '../../encoder/model/installed-models.ts';
import { openModelDirectory } from '../../encoder/model/model-directory.ts';
import { loadModel, type ServedModel } from '../../encoder/model/served-model.ts';
import { inputError, messageOf } from '../failure.ts';
import { fields, type CommandResult } from '../output.ts';
import { bestTenFound, readSampleTexts, type Running, type SampleTexts } from './best-ten.ts';
import { goldenRun } from './golden-run.ts';
import { type ModelSource, readModelSource, type SourceManifest } from './model-source.ts';
import { fitRows } from './fit-rows.ts';
import { type Collection, readCollection, readJudged } from './quality/collection.ts';
import { measureQuality, type Quality } from './quality/measure.ts';
import type { NoSingleVector, SingleVector } from './quality/single-vector.ts';

export interface AddOptions {
  readonly name?: string;
  readonly version?: string;
  /** 1, 2, 4 or 8; absent = as the export says, or 8. */
  readonly rowBits?: number;
  /** One row is stored for so many token vectors of a chunk; absent = as the export says, or 1. */
  readonly poolFactor?: number;
  /** A file with the texts that few bits are compared with f32 on. */
  readonly texts?: string;
  /** A directory of BEIR, over which nDCG@10 is measured once the model is installed. */
  readonly beir?: string;
}

const configFile = 'onnx_config.json';
const momentFile = 'moment.f16';

/** A name that fits into a path, a header and `MAXSIMD_MODEL`. */
const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

/** Installs the model in the first of the folders. */
export async function addModel(
  folders: readonly [string, ...string[]],
  given: string,
  options: AddOptions,
  progressTo: Pick<Running, 'stderr'> & { readonly interruption: () => AbortSignal },
): Promise<CommandResult> {
  const source = withRows(await readModelSource(path.resolve(given)), options);
  const texts = await textsFor(source, options.texts);
  const judged = options.beir === undefined ? undefined : await readJudged(options.beir);
  const { name, version } = await namesFor(folders, source, options);
  const [folder] = folders;
  makeDirectories(folder);
  // The folder is hidden, so that no server loads the model before it is complete.
  const staging = await mkdtemp(path.join(folder, '.adding-'));
  try {
    const staged = path.join(staging, name, version);
    makeDirectories(staged);
    await copyFiles(source, staged);
    const weights = source.embedding?.weights;
    if (weights !== undefined) await writeFile(path.join(staged, weights.file), weights.values);
    const write = async (manifest: object): Promise<void> =>
      writeFile(
        path.join(staged, 'manifest.json'),
        `${JSON.stringify({ ...manifest, name, version }, undefined, 2)}\n`,
      );
    // A small difference of vectors may pool other ones, or move another code. So vectors are compared before that.
    await writeConfig(staged, withOwn(source, { pool_factor: 1, moment: undefined }));
    // Opening the model checks the other checksums and the golden values of its manifest.
    if (source.manifest !== undefined) await write(withoutConfig(source.manifest));
    const { model: unpooled, golden } = await checked(staged, source);
    if (source.manifest === undefined) {
      const fitted = texts === undefined ? {} : await fit(staged, source, unpooled, texts);
      await writeConfig(staged, withOwn(source, fitted));
      const made = [weights?.file, fitted.moment].filter((file) => file !== undefined);
      const names = [...source.files.map(({ to }) => to), configFile, ...made];
      await write({ dim: unpooled.dim, files: await checksums(staged, names), golden });
    } else {
      await copyFile(path.join(source.directory, configFile), path.join(staged, configFile));
      await write(source.manifest);
    }
    const model = await atStaging(staged, () => loadModel(staged));
    const running = { stderr: progressTo.stderr, signal: progressTo.interruption() };
    const bestTen = texts && {
      found: await bestTenFound(model, texts, running),
      passages: texts.passages.length,
      queries: texts.queries.length,
    };
    const collection = judged && (await readCollection(model, judged, running.signal));
    const directory = path.join(folder, name, version);
    makeDirectories(path.dirname(directory));
    await rename(staged, directory);
    const notes = [...source.notes, ...skipNotes(model, source)];
    const installed = { name, version, directory, notes, bestTen };
    if (collection === undefined) return report(model, { ...installed, measured: undefined });
    running.stderr.write(`${name} version ${version} is installed, and its rankings are measured now\n`);
    const measured = await measureOn(directory, collection, { ...running, ...source });
    return report(model, { ...installed, measured });
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

/** With the rows that the options ask for. */
function withRows(source: ModelSource, { rowBits, poolFactor }: AddOptions): ModelSource {
  const given = {
    ...(rowBits === undefined ? {} : { row_bits: rowBits }),
    ...(poolFactor === undefined ? {} : { pool_factor: poolFactor }),
  };
  const [key] = Object.keys(given);
  if (key !== undefined && source.manifest !== undefined) {
    throw inputError(
      `--${key.replace('_', '-')}: ${source.directory} has a manifest, and its rows stay as they are; give the export that it was made of`,
    );
  }
  // The matrix is fitted here. That of an export is not among the files of one.
  return withOwn(source, source.manifest === undefined ? { ...given, moment: undefined } : given);
}

function withoutConfig(manifest: SourceManifest): SourceManifest {
  const { [configFile]: _, ...files } = manifest.files;
  return { ...manifest, files };
}

interface OwnConfig {
  readonly row_bits?: number;
  readonly pool_factor?: number;
  readonly moment?: string | undefined;
  readonly centring?: readonly number[];
}

function ownConfigOf({ config }: ModelSource): OwnConfig {
  return config['maxsimd'] ?? {};
}

function withOwn(source: ModelSource, more: OwnConfig): ModelSource {
  return { ...source, config: { ...source.config, maxsimd: { ...ownConfigOf(source), ...more } } };
}

/** The texts that a model is fitted on, and stored rows are compared with f32 on. Plain rows of 8 bits need none. */
async function textsFor(source: ModelSource, file: string | undefined): Promise<SampleTexts | undefined> {
  const { row_bits: rowBits = 8, pool_factor: poolFactor = 1 } = ownConfigOf(source);
  if (rowBits < 8 || poolFactor > 1 || source.embedding !== undefined) return readSampleTexts(file);
  if (file === undefined) return undefined;
  throw inputError(
    '--texts needs rows of fewer than 8 bits or pooled ones: add --row-bits 1, 2 or 4, or --pool-factor',
  );
}

/** Fits on passages what the export lacks: the mean vector of an embedding model, and the matrix with which codes are refined. */
async function fit(
  staged: string,
  { embedding }: ModelSource,
  model: ServedModel,
  { passages }: SampleTexts,
): Promise<OwnConfig> {
  const { mean, moment } = await fitRows(model, passages);
  if (model.rowBits < 8) await writeFile(path.join(staged, momentFile), moment);
  return {
    ...(embedding === undefined ? {} : { centring: mean }),
    ...(model.rowBits < 8 ? { moment: momentFile } : {}),
  };
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

async function copyFiles(source: ModelSource, staged: string): Promise<void> {
  const { directory, files } = source;
  for (const { from, to } of files) {
    try {
      makeDirectories(path.dirname(path.join(staged, to)));
      await copyFile(path.join(directory, from), path.join(staged, to));
    } catch (error) {
      throw inputError(`cannot copy ${path.join(directory, from)}: ${messageOf(error)}`, error);
    }
  }
}

async function writeConfig(staged: string, { config }: ModelSource): Promise<void> {
  await writeFile(path.join(staged, configFile), `${JSON.stringify(config, undefined, 2)}\n`);
}

/** Loads the model, and throws unless the service can serve it. */
async function checked(staged: string, { f32Advice }: ModelSource): ReturnType<typeof goldenRun> {
  return atStaging(staged, async () => {
    const { config, tokenizer } = await openModelDirectory(staged);
    const { model, golden } = await goldenRun(staged, f32Advice);
    for (const kind of ['query', 'document'] as const) {
      const problem = prefixProblem(tokenizer, model, config[`${kind}_prefix`], config[`${kind}_prefix_id`]);
      if (problem !== undefined) throw inputError(problem);
    }
    return { model, golden };
  });
}

/** Messages of errors name files without the hidden folder. */
async function atStaging<T>(staged: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
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

async function checksums(staged: string, names: readonly string[]): Promise<Record<string, object>> {
  const entries: Record<string, object> = {};
  for (const name of new Set(names)) {
    const file = path.join(staged, name);
    const hash = createHash('sha256');
    await pipeline(createReadStream(file), hash);
    entries[name] = { sha256: hash.digest('hex'), bytes: (await stat(file)).size };
  }
  return entries;
}

interface Measured {
  readonly quality: Quality;
  readonly singleVector: SingleVector | NoSingleVector;
  readonly collection: Collection;
}

async function measureOn(
  directory: string,
  collection: Collection,
  { singleVector, ...running }: Running & Pick<ModelSource, 'singleVector'>,
): Promise<Measured> {
  const pooling = 'pooling' in singleVector ? singleVector.pooling : undefined;
  const quality = await measureQuality(await loadModel(directory), collection, pooling, running);
  return { quality, singleVector, collection };
}

interface Installed {
  readonly name: string;
  readonly version: string;
  readonly directory: string;
  readonly notes: readonly string[];
  /** How many of the best ten by f32 rows are found, if rows have few bits or are pooled. */
  readonly bestTen:
    | { readonly found: number; readonly passages: number; readonly queries: number }
    | undefined;
  /** Over a judged collection, if one was given. */
  readonly measured: Measured | undefined;
}

function report(model: ServedModel, installed: Installed): CommandResult {
  const { name, version, directory, notes, bestTen, measured } = installed;
  const { rules, dim, rowBits, poolFactor, windowTokensMax } = model;
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
    ['rows', poolFactor === 1 ? 'one a token' : `one for ${poolFactor} tokens`],
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
      pool_factor: poolFactor,
      window_tokens_max: windowTokensMax,
      best_ten: bestTen,
      beir: measured && measuredDocument(measured),
      notes,
    },
    text: [
      fields(pairs),
      ...(bestTen === undefined ? [] : [bestTenLine(model, bestTen)]),
      ...(measured === undefined ? [] : [measuredLine(measured)]),
      ...notes.map((note) => `note: ${note}`),
      `A running server serves it: create an index with "model": "${name}".`,
    ].join('\n'),
  };
}

function bestTenLine(
  { rowBits, poolFactor }: ServedModel,
  { found, passages, queries }: NonNullable<Installed['bestTen']>,
): string {
  const texts = `${passages.toLocaleString('en')} passages, ${queries} queries`;
  return `Of the best ten passages by f32 rows, ${found.toFixed(1)} are found with ${bitsOf(rowBits)}${poolFactor === 1 ? '' : `, pooled by ${poolFactor}`} (${texts}).`;
}

function bitsOf(rowBits: number): string {
  return rowBits === 1 ? '1 bit' : `${rowBits} bits`;
}

function measuredDocument({ quality, singleVector, collection }: Measured): object {
  const { queries, documents, leftOut, chunks } = collection;
  return {
    queries: queries.length,
    documents: documents.length,
    documents_left_out: leftOut,
    chunks: chunks.length,
    ndcg_at_10: {
      late_interaction: quality.stored,
      late_interaction_f32: quality.f32,
      single_vector: quality.singleVector ?? null,
    },
    single_vector:
      'pooling' in singleVector
        ? { pooling: singleVector.pooling, by: singleVector.source }
        : { pooling: null, reason: singleVector.reason },
  };
}

function measuredLine({ quality, singleVector, collection }: Measured): string {
  const { queries, documents, leftOut } = collection;
  const texts = `${documents.length.toLocaleString('en')} documents${leftOut === 0 ? '' : ` (${leftOut} rows of the corpus are none)`}, ${queries.length.toLocaleString('en')} queries`;
  const single =
    'pooling' in singleVector
      ? `single vector ${quality.singleVector!.toFixed(3)} (${singleVector.pooling} of the token vectors, by ${singleVector.source})`
      : `no single vector (${singleVector.reason})`;
  return `nDCG@10: late interaction ${quality.stored.toFixed(3)} (f32 rows ${quality.f32.toFixed(3)}), ${single}; ${texts}.`;
}
