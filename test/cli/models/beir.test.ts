/** `maxsimd models add --beir`: nDCG@10 of late interaction and of the single vector, beside a reference that shares no code with it. */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { Interruption } from '../../../src/cli/failure.ts';
import { ndcg } from '../../../src/cli/evaluation/ndcg.ts';
import { addModel } from '../../../src/cli/models/add.ts';
import { readSingleVector } from '../../../src/cli/models/quality/single-vector.ts';
import { tokenWeightsOf } from '../../../src/cli/models/token-weights.ts';
import { runHere, type RunOptions } from '../../support/commands/command-here.ts';
import { runJsonHere } from '../../support/commands/command-process.ts';
import { pieces } from '../../support/encoder/colbert-reference.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';

const fixtures = path.resolve(import.meta.dirname, '../../fixtures/colbert-tiny');
const tokenizer = JSON.parse(readFileSync(path.join(fixtures, 'embedding/tokenizer.json'), 'utf8'));
const vocabulary: Readonly<Record<string, number>> = tokenizer.model.vocab;
const size = 16;

let directory: string;
let models: string;
let source: string;
let beir: string;
let options: RunOptions;

beforeEach(async () => {
  directory = await newDirectory();
  models = path.join(directory, 'models');
  source = path.join(directory, 'an-embedding');
  beir = path.join(directory, 'beir');
  cpSync(path.join(fixtures, 'embedding'), source, { recursive: true });
  options = { environment: { MAXSIMD_MODELS_DIR: models, MAXSIMD_DATA_DIR: path.join(directory, 'data') } };
});

const add = (...args: string[]): ReturnType<typeof runJsonHere> =>
  runJsonHere(['models', 'add', source, '--beir', beir, ...args], options);

interface Given {
  readonly documents: readonly { readonly _id: string; readonly text: string }[];
  readonly queries: readonly { readonly _id: string; readonly text: string }[];
  /** Query id -> document id -> grade. */
  readonly grades: ReadonlyMap<string, ReadonlyMap<string, number>>;
}

function write({ documents, queries, grades }: Given): void {
  mkdirSync(beir, { recursive: true });
  const lines = (rows: readonly object[]): string => rows.map((row) => `${JSON.stringify(row)}\n`).join('');
  writeFileSync(path.join(beir, 'corpus.jsonl'), lines(documents));
  writeFileSync(path.join(beir, 'queries.jsonl'), lines(queries));
  const judged = [...grades].flatMap(([query, own]) =>
    [...own].map(([document, grade]) => `${query}\t${document}\t${grade}\n`),
  );
  writeFileSync(path.join(beir, 'qrels.tsv'), judged.join(''));
}

/** Numbers that look random, the same in every run. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 48_271) % 2_147_483_647;
    return state % below;
  };
}

/** Texts of words that the vocabulary has. Grades are by chance, so that no ranking is perfect. */
function collectionOf(count: number): Given {
  const words = Object.keys(vocabulary).filter((word) => /^[a-z]{2,}$/.test(word));
  const next = numbers(7);
  const textOf = (length: number): string =>
    Array.from({ length }, () => words[next(words.length)]).join(' ');
  const documents = Array.from({ length: count }, (_, i) => ({ _id: `d${i}`, text: textOf(3 + next(20)) }));
  const queries = Array.from({ length: 12 }, (_, i) => ({ _id: `q${i}`, text: textOf(2 + next(4)) }));
  const grades = new Map(
    queries.map(({ _id }) => [
      _id,
      new Map(Array.from({ length: 6 }, () => [`d${next(count)}`, 1 + next(2)] as const)),
    ]),
  );
  // A document that is a query itself, and was not judged for itself, is left out of its ranking.
  documents.push({ _id: 'q0', text: queries[0]!.text });
  return { documents, queries, grades };
}

/** f64 [tokens][dim]: the states that the generator of the fixture describes. */
function statesOf(tokens: readonly string[]): number[][] {
  const axes = Array.from({ length: size }, (_, at) => at);
  const embedded = tokens.map((token) =>
    axes.map((h) => Math.sin(12.9898 * vocabulary[token]! + 78.233 * h + 1)),
  );
  const context = axes.map((h) => embedded.reduce((sum, row) => sum + row[h]!, 0) / tokens.length);
  return embedded.map((row) =>
    axes.map((d) =>
      axes.reduce((sum, h) => sum + (row[h]! + 0.5 * context[h]!) * Math.sin(3.7 * h + 9.1 * d + 2), 0),
    ),
  );
}

const tokensOf = (prompt: string, text: string): string[] => ['[CLS]', prompt, ...pieces(text), '[SEP]'];
const dot = (one: readonly number[], other: readonly number[]): number =>
  one.reduce((sum, value, at) => sum + value * other[at]!, 0);
const unit = (row: readonly number[]): number[] => row.map((value) => value / Math.sqrt(dot(row, row)));

type Score = (query: readonly string[], document: readonly string[]) => number;

const weights = tokenWeightsOf(tokenizer)!.values;
const lateInteraction: Score = (query, document) => {
  const rows = statesOf(document).map(unit);
  return statesOf(query)
    .map(unit)
    .reduce((sum, row, at) => {
      const best = Math.max(...rows.map((other) => dot(row, other)));
      return sum + weights[vocabulary[query[at]!]!]! * best;
    }, 0);
};
const meanOf = (rows: readonly (readonly number[])[]): number[] =>
  rows[0]!.map((_, at) => rows.reduce((sum, row) => sum + row[at]!, 0) / rows.length);
const byMean: Score = (query, document) =>
  dot(unit(meanOf(statesOf(query))), unit(meanOf(statesOf(document))));
const byFirst: Score = (query, document) => dot(unit(statesOf(query)[0]!), unit(statesOf(document)[0]!));

function expected({ documents, queries, grades }: Given, score: Score): number {
  const all = queries.map(({ _id, text }) => {
    const scored = documents
      .filter(({ _id: docId }) => docId !== _id)
      .map((each) => [each._id, score(tokensOf('query', text), tokensOf('document', each.text))] as const)
      .toSorted((one, other) => other[1] - one[1]);
    return ndcg(
      scored.map(([docId]) => docId),
      grades.get(_id)!,
      10,
    );
  });
  return all.reduce((sum, each) => sum + each, 0) / all.length;
}

it('measures what a reference measures: f32 rows, the mean and the first vector', async () => {
  const given = collectionOf(80);
  write(given);
  const { document } = await add();
  expect(document.beir).toMatchObject({ queries: 12, documents: 81, documents_left_out: 0, chunks: 81 });
  const { late_interaction: stored, ...exact } = document.beir.ndcg_at_10;
  expect(exact.late_interaction_f32).toBeCloseTo(expected(given, lateInteraction), 9);
  expect(exact.single_vector).toBeCloseTo(expected(given, byMean), 9);
  expect(document.beir.single_vector).toMatchObject({ pooling: 'mean' });
  expect(Math.abs(stored - exact.late_interaction_f32)).toBeLessThan(0.05);
  expect(exact.single_vector).not.toBeCloseTo(exact.late_interaction_f32, 3);

  mkdirSync(path.join(source, '1_Pooling'));
  writeFileSync(path.join(source, '1_Pooling/config.json'), '{"pooling_mode_cls_token":true}');
  const { document: first } = await add('--row-bits', '1');
  expect(first.beir.ndcg_at_10.single_vector).toBeCloseTo(expected(given, byFirst), 9);
  expect(first.beir.single_vector).toEqual({ pooling: 'cls', by: '1_Pooling/config.json' });
  // Fewer bits change what is stored alone.
  expect(first.beir.ndcg_at_10.late_interaction_f32).toBe(exact.late_interaction_f32);
  expect(first.beir.ndcg_at_10.late_interaction).not.toBe(stored);
});

it('a long document counts once, at its best chunk, and rows without text are counted', async () => {
  const filler = 'small models '.repeat(100);
  write({
    documents: [
      { _id: 'long', text: `${filler}late interaction vectors` },
      { _id: 'other', text: filler },
      { _id: 'empty', text: '' },
    ],
    queries: [{ _id: 'q', text: 'late interaction vectors' }],
    grades: new Map([['q', new Map([['long', 1]])]]),
  });
  const { stdout } = await runHere(['models', 'add', source, '--beir', beir], options);
  expect(stdout).toMatch(
    /^nDCG@10: late interaction 1\.000 \(f32 rows 1\.000\), single vector [01]\.\d{3} \(mean of the token vectors, by the default, because there is no 1_Pooling\/config\.json\); 2 documents \(1 rows of the corpus are none\), 1 queries\.$/m,
  );
});

it('a ColBERT export and a directory with a manifest have no single vector', async () => {
  write(collectionOf(20));
  const embedding = await add();
  source = embedding.document.directory;
  expect((await add('--version', '7')).document.beir.ndcg_at_10).toMatchObject({
    late_interaction: embedding.document.beir.ndcg_at_10.late_interaction,
    single_vector: null,
  });
  source = path.join(fixtures, '1');
  const { stdout } = await runHere(['models', 'add', source, '--name', 'colbert', '--beir', beir], options);
  expect(stdout).toMatch(
    /late interaction \d\.\d{3} \(f32 rows \d\.\d{3}\), no single vector \(a ColBERT export has none\)/,
  );
});

describe('nothing is installed', () => {
  const refused = async (): Promise<string> => {
    const { exitCode, document } = await add();
    expect(exitCode).toBe(1);
    expect(existsSync(models) ? readdirSync(models) : []).toEqual([]);
    return document.error.message;
  };
  const judged = new Map([['q', new Map([['d0', 1]])]]);
  const queries = [{ _id: 'q', text: 'late' }];

  it('without documents, queries or judgements', async () => {
    expect(await refused()).toContain('is not a directory');
    write({
      documents: [{ _id: 'd0', text: 'late' }],
      queries: [{ _id: 'other', text: 'x' }],
      grades: judged,
    });
    expect(await refused()).toContain('no query has judgements');
    rmSync(path.join(beir, 'corpus.jsonl'));
    expect(await refused()).toContain('corpus.jsonl');
    write({ documents: [{ _id: 'd0', text: '' }], queries, grades: judged });
    expect(await refused()).toContain('no document with text');
    write({ documents: ['late', 'vectors'].map((text) => ({ _id: 'd0', text })), queries, grades: judged });
    expect(await refused()).toContain('corpus.jsonl:2: document d0 appears twice');
  });

  it('if there are more chunks, or more tokens of queries, than fit', async () => {
    const documents = Array.from({ length: 50_001 }, (_, i) => ({ _id: `d${i}`, text: 'late' }));
    write({ documents, queries, grades: judged });
    expect(await refused()).toContain('more than 50,000 chunks of 45 tokens');
    const many = Array.from({ length: 1_100 }, (_, i) => ({ _id: `q${i}`, text: 'late '.repeat(60) }));
    const grades = new Map(many.map(({ _id }) => [_id, new Map([['d0', 1]])]));
    write({ documents: documents.slice(0, 1), queries: many, grades });
    expect(await refused()).toContain('have 52,800 tokens together, and at most 50,000');
  });
});

it('Ctrl-C during the measure leaves the model installed', async () => {
  write(collectionOf(20));
  const stop = new AbortController();
  const said: string[] = [];
  const stderr = {
    write: (line: string) => {
      said.push(line);
      if (line.includes('is installed')) stop.abort(new Interruption('SIGINT'));
      return true;
    },
  } as unknown as NodeJS.WriteStream;
  const running = { stderr, interruption: () => stop.signal };
  await expect(addModel([models, models], source, { beir }, running)).rejects.toThrow('SIGINT');
  expect(said).toContain('an-embedding version 1 is installed, and its rankings are measured now\n');
  expect(readdirSync(path.join(models, 'an-embedding'))).toEqual(['1']);
});

describe('the single vector', () => {
  const pooled = async (config: object): ReturnType<typeof readSingleVector> => {
    mkdirSync(path.join(source, '1_Pooling'), { recursive: true });
    writeFileSync(path.join(source, '1_Pooling/config.json'), JSON.stringify(config));
    return readSingleVector(source);
  };

  it('is the kind of pooling that the export names', async () => {
    expect(await readSingleVector(source)).toMatchObject({ pooling: 'mean' });
    expect(await pooled({ pooling_mode_mean_tokens: true, pooling_mode_cls_token: false })).toMatchObject({
      pooling: 'mean',
    });
    expect(await pooled({ pooling_mode: 'cls' })).toMatchObject({ pooling: 'cls' });
  });

  it('is unknown for other kinds, prompts that do not count, and modules that the graph may lack', async () => {
    expect(await pooled({ pooling_mode_max_tokens: true })).toEqual({
      reason: '1_Pooling/config.json asks for pooling_mode_max_tokens, not for mean or cls',
    });
    expect(await pooled({ pooling_mode: ['mean', 'cls'] })).toHaveProperty('reason');
    expect(await pooled({ pooling_mode: 'mean', include_prompt: false })).toHaveProperty('reason');
    const modules = [
      { type: 'sentence_transformers.models.Pooling' },
      { type: 'sentence_transformers.models.Dense' },
    ];
    writeFileSync(path.join(source, 'modules.json'), JSON.stringify(modules));
    expect(await readSingleVector(source)).toMatchObject({ reason: expect.stringContaining('Dense') });
  });
});
