/** Folders in the layout of Hugging Face datasets. */
import { cpSync, mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { openDataset, type DatasetChoice } from '../../../src/cli/import/sources/dataset.ts';
import { ApiDouble } from '../../support/http/api-double.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { runHere } from '../../support/commands/command-here.ts';
import { runJsonHere } from '../../support/commands/command-process.ts';
import { writeFile } from './import-stage.ts';

let directory: string;

beforeEach(async () => {
  directory = await newDirectory();
});

function files(...names: readonly (string | readonly [string, string])[]): void {
  for (const item of names) {
    const [name, content] = typeof item === 'string' ? [item, ''] : item;
    writeFile(directory, name, content);
  }
}

const open = (choice: DatasetChoice = {}) => {
  const dataset = openDataset(directory, choice);
  return { ...dataset, files: dataset.files.map((file) => path.relative(directory, file)) };
};
const card = (yaml: string): readonly [string, string] => ['README.md', `---\n${yaml}\n---\n# A dataset\n`];

describe('a dataset', () => {
  it('has the shards of its one split in their order', () => {
    files(
      'data/train-00001-of-00002.parquet',
      'data/train-00000-of-00002.parquet',
      '.gitattributes',
      'README.md',
    );
    expect(open()).toEqual({
      subset: 'default',
      split: 'train',
      files: ['data/train-00000-of-00002.parquet', 'data/train-00001-of-00002.parquet'],
      advice: '',
    });
  });

  it('with several splits needs one chosen', () => {
    files('data/train-00000-of-00001.parquet', 'data/test-00000-of-00001.parquet');
    expect(() => open()).toThrow(
      /has the splits (train, test|test, train): choose with --split NAME, or "all"/,
    );
    expect(open({ split: 'test' }).files).toEqual(['data/test-00000-of-00001.parquet']);
    expect(open({ split: 'all' }).files).toHaveLength(2);
    expect(() => open({ split: 'dev' })).toThrow(/has no split dev/);
  });

  it('keeps subsets apart by folder; one called corpus is meant', () => {
    files('corpus/corpus-00000-of-00001.parquet', 'queries/queries-00000-of-00001.parquet');
    expect(open()).toMatchObject({
      subset: 'corpus',
      split: 'corpus',
      files: ['corpus/corpus-00000-of-00001.parquet'],
    });
    files('other/a.jsonl', 'default/test.jsonl', 'default/train.jsonl');
    const others = / train.*; --subset NAME chooses among .*corpus/;
    expect(() => open({ subset: 'default' })).toThrow(others);
    expect(() => open({ subset: 'default', split: 'dev' })).toThrow(others);
    files('other/a.csv');
    expect(() => open({ subset: 'other' })).toThrow(/by its path; --subset NAME/);
    rmSync(path.join(directory, 'other/a.csv'));
    expect(open()).toMatchObject({
      subset: 'corpus',
      advice: expect.stringMatching(/--subset NAME chooses among .*default/),
    });
    expect(open({ subset: 'other' }).files).toEqual(['other/a.jsonl']);
  });

  it('is read as its README says', () => {
    files(
      card(`configs:
- config_name: en
  data_files:
  - split: train
    path: en/*.jsonl
  - split: test
    path: [en/held/a.jsonl, en/held/b.jsonl]
- config_name: de
  data_files: de/**
dataset_info:
- config_name: en
  splits:
  - name: train
    num_examples: 7
- config_name: de
  splits: []`),
      'en/1.jsonl',
      'en/held/a.jsonl',
      'en/held/b.jsonl',
      'de/x/1.jsonl',
    );
    expect(() => open()).toThrow(/has the subsets en, de: choose with --subset NAME/);
    expect(open({ subset: 'en', split: 'train' })).toMatchObject({ files: ['en/1.jsonl'], rowsPromised: 7 });
    expect(open({ subset: 'en', split: 'test' }).files).toEqual(['en/held/a.jsonl', 'en/held/b.jsonl']);
    expect(open({ subset: 'de' }).files).toEqual(['de/x/1.jsonl']);
  });

  it('is refused when a shard is missing, formats are mixed, or there is nothing to read', () => {
    expect(() => open()).toThrow(
      /holds neither corpus\.jsonl .* nor Parquet, JSONL or CSV files of a dataset/,
    );
    files('data-00000-of-00001.arrow', ['dataset_info.json', '{}'], 'state.json');
    expect(() => open()).toThrow(/Arrow files of save_to_disk.*with load_from_disk\(".*"\)\.to_parquet\(/);
    files(['dataset_dict.json', '{"splits": ["train", "test"]}']);
    expect(() => open()).toThrow(
      /with for split, rows in load_from_disk\(".*"\)\.items\(\): rows\.to_parquet\(/,
    );
    files('train-00000-of-00003.parquet', 'train-00002-of-00003.parquet');
    expect(() => open()).toThrow(/shard 1 of 3 is missing/);
    files('train-00001-of-00003.parquet', 'train.csv');
    expect(() => open()).toThrow(/holds (parquet and csv|csv and parquet) files/);
  });

  it('with a card that cannot be understood is refused with the reason', () => {
    files(card('configs: 5'), 'a.jsonl');
    expect(() => open()).toThrow(/cannot understand .*README\.md: /);
    files(card('configs:\n- "'), 'a.jsonl');
    expect(() => open()).toThrow(/README\.md: .* at line \d/);
    files(card(`x: ${'y'.repeat(131_072)}`), 'a.jsonl');
    expect(() => open()).toThrow(/README\.md: the front matter has more than 131072 bytes/);
  });
});

describe('import of a dataset', () => {
  it('of several subsets says that another may be meant', async () => {
    const judgement = '{"query-id":"1","corpus-id":"a","score":1}\n';
    files(
      ['qrels/test.jsonl', judgement],
      ['table/test.csv', 'query-id,corpus-id\n1,a\n'],
      'empty/test.jsonl',
    );
    for (const [subset, message] of [
      ['qrels', /no doc_id, _id or id \(.*\); --subset NAME chooses among .*qrels.*$/],
      ['table', /has no column doc_id, _id, id, .* of the content; --subset NAME chooses among .*$/],
      ['empty', /holds no document; --subset NAME chooses among .*$/],
    ] as const) {
      const { exitCode, stderr } = await runHere([
        'import',
        directory,
        '--index',
        'books',
        '--dry-run',
        '--subset',
        subset,
      ]);
      expect([exitCode, stderr.trim()]).toEqual([1, expect.stringMatching(message)]);
    }
  });

  it('sends all shards, names the file of a failure, and says when rows are missing', async () => {
    const api = new ApiDouble();
    const options = { environment: { MAXSIMD_URL: await api.listen(), MAXSIMD_API_KEY: 'qkv_live_test' } };
    const fixtures = path.resolve(import.meta.dirname, '../../fixtures/parquet');
    mkdirSync(path.join(directory, 'data'));
    cpSync(path.join(fixtures, 'zstd.parquet'), path.join(directory, 'data/train-00000-of-00002.parquet'));
    cpSync(path.join(fixtures, 'long.parquet'), path.join(directory, 'data/train-00001-of-00002.parquet'));
    files([
      'dataset_info.json',
      JSON.stringify({ splits: { train: { name: 'train', num_examples: 4200 } } }),
    ]);
    api.intercept = ({ body, path: route }) => {
      if (!route.endsWith('/documents')) return undefined;
      return {
        body: {
          upserted_documents: body.documents.length - (body.documents[0].doc_id === 'a' ? 0 : 1),
          failed:
            body.documents[0].doc_id === 'a' ? [] : [{ doc_id: body.documents[0].doc_id, error: 'bad' }],
          usage: { input_tokens: 0 },
        },
      };
    };
    const { document, stderr } = await runJsonHere(['import', directory, '--index', 'books'], options);
    await api.close();
    expect(document).toMatchObject({ done: 3 + 4100 - 82, failed: 82 });
    const second = path.join(directory, 'data/train-00001-of-00002.parquet');
    expect(document.failures[0]).toEqual({ file: second, line: 48, doc_id: '47', error: 'bad' });
    expect(stderr).toMatch(/\(subset default, split train\): has 4103 rows, its description says 4200\n/);
  });
});
