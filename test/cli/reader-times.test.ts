/**
 * Every reader of the command line takes time linear in the bytes of its file, whatever stands there: random shapes of
 * files at one size and at four times that, in time of the processor.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';

import { readJudgements } from '../../src/cli/evaluation/judgements.ts';
import { readQueries } from '../../src/cli/evaluation/queries.ts';
import { DocumentReader } from '../../src/cli/import/document.ts';
import type { FieldChoice } from '../../src/cli/import/fields.ts';
import { openDataset } from '../../src/cli/import/sources/dataset.ts';
import { openSource, rowsOf } from '../../src/cli/import/sources/source.ts';
import { rounds } from '../rounds.ts';
import { newDirectory } from '../support/machine/temporary-directory.ts';
import { announceRandom, type Random } from '../support/running/random.ts';

const smallBytes = 64 << 10;
/** Linear is 4 here; a quarter of the time is lost in the clock's ticks. */
const growthMax = 12;
/** A reader that takes less than this at the larger size is too quick to be judged. */
const judgedMs = 40;

interface Reader {
  readonly name: string;
  /** Beginning, and what is repeated after it; a `#` is the number of the repetition. */
  readonly heads: readonly string[];
  readonly units: readonly string[];
  /** Head and unit of files that once took long. */
  readonly found?: readonly (readonly [head: string, unit: string])[];
  /** Writes the file and reads it. */
  readonly read: (directory: string, text: string) => Promise<void>;
}

const json = [
  '{"doc_id":"#","text":"t"}\n',
  '{"doc_id":"1","text":"t"}\n',
  '{"doc_id":"#","text":"t","m#":1234567890123456789}\n',
  '{"id":"#","te',
  '\n',
  '\r',
  '[',
  '{"a":',
  ',"#":0',
  ',"#":1e999',
  ',12345678901234567890',
  'x',
  '"',
  '\\"',
  '\\u0000',
  ' ',
  'é',
  '💥',
];

const yaml = [
  '- config_name: c#\n  data_files: "*.csv"\n',
  '  - name: s#\n    num_examples: 1\n',
  'k#: 1\n',
  '- ',
  '[',
  '{',
  '{a: ',
  '"',
  '\\x',
  '\n',
  '\r\n',
  '---',
  '\n--',
  '  ',
  '? ',
  ': ',
  '*a ',
  '&b# ',
  '|\n',
  '#\n',
  'x',
];

async function importAll(file: string, fields: FieldChoice): Promise<void> {
  const source = await openSource({ source: file, fields }, process.stdin, new AbortController().signal);
  const reader = new DocumentReader(fields);
  for await (const row of rowsOf(source)) reader.read(row);
}

const importing =
  (name: string, fields: FieldChoice = {}): Reader['read'] =>
  async (directory, text) => {
    const file = path.join(directory, name);
    writeFileSync(file, text);
    await importAll(file, fields);
  };

const readers: readonly Reader[] = [
  {
    name: 'JSON Lines',
    heads: ['', '{"doc_id":"d","text":"', '{"doc_id":"d","text":"t","metadata":{"":0', '{"id":"1"', '\ufeff'],
    units: json,
    read: importing('a.jsonl'),
  },
  {
    name: 'a JSON array',
    heads: ['[', '[{"doc_id":"d","text":"', '[{"doc_id":"d","metadata":{"":0', '[{"id":"1"}'],
    units: [...json, ',', '},'],
    read: importing('a.json'),
  },
  {
    name: 'columns of Chroma',
    heads: ['{"ids":["a"', '{"ids":["', '{"documents":["t"],"ids":["a"', '{"metadatas":[{"":0'],
    units: [...json, ',"#"', '],"documents":[', '],"embeddings":[0', '}{"ids":["#"'],
    read: importing('a.json', { from: 'chroma' }),
  },
  {
    name: 'docstore of LlamaIndex',
    heads: [
      '{"docstore/data":{',
      '{"docstore/metadata":{',
      '{"docstore/data":{"a":{"__data__":{"id_":"a","text":"t',
    ],
    units: [
      ...json,
      ',',
      '"#":{"__data__":{"id_":"#","text":"t","class_name":"Document"}},',
      '}},"docstore/data":{',
    ],
    read: importing('a.json', { from: 'llamaindex' }),
  },
  {
    name: 'CSV',
    heads: [
      '',
      'doc_id,text\n',
      'doc_id;text\n',
      'doc_id,text',
      'doc_id,text\n1,"',
      'doc_id,text,metadata\n1,t,"',
    ],
    units: [
      ',',
      ',c#',
      ';',
      '"',
      '""',
      '#,t\n',
      '#,t',
      '\n',
      '\r\n',
      '\t',
      'x',
      '"a\n",',
      '[',
      '{""a"":',
      ' ',
      'é',
    ],
    found: [['doc_id,text', ',c#']],
    read: importing('a.csv'),
  },
  {
    name: 'queries',
    heads: ['', '{"_id":"1","text":"'],
    units: [...json, '{"_id":"#","text":"t"}\n'],
    read: async (directory, text) => {
      const file = path.join(directory, 'queries.jsonl');
      writeFileSync(file, text);
      await readQueries([file]);
    },
  },
  {
    name: 'judgements',
    heads: ['', 'query-id\tcorpus-id\tscore\n'],
    units: [
      'q#\td#\t1\n',
      'q# 0 d# 1\n',
      'q#\td#\t1\t0\n',
      'q\td#\t1\n',
      'q\td\t1\n',
      '\t',
      '\n',
      '\r\n',
      '1',
      ' ',
      '-',
      'x#',
    ],
    read: async (directory, text) => {
      const file = path.join(directory, 'qrels.tsv');
      writeFileSync(file, text);
      await readJudgements([file]);
    },
  },
  {
    name: 'card of a dataset',
    heads: ['---\n', '---\nconfigs:\n', '---\ndataset_info:\n  splits:\n', '', '---\na: &a\n'],
    units: yaml,
    found: [
      ['---\n', 'k#: 1\n'],
      ['---\na: &a\n', '- &b# "'],
    ],
    read: async (directory, text) => {
      writeFileSync(path.join(directory, 'README.md'), `${text}\n---\n`);
      writeFileSync(path.join(directory, 'a.csv'), 'doc_id,text\n');
      openDataset(directory, {});
    },
  },
  {
    name: 'Markdown with front matter',
    heads: ['---\n', '---\ntags: [', '---\na: &a\n', '', '---\n---\n'],
    units: yaml,
    found: [['---\na: &a\n', '- &b# "']],
    read: (directory, text) => importing('a.md')(directory, `${text}\n---\n`),
  },
];

/** Up to three units, one after another. */
function shapeOf(reader: Reader, random: Random): { readonly head: string; readonly unit: string } {
  const units = Array.from({ length: random.integer(1, 3) }, () => random.pick(reader.units));
  return { head: random.pick(reader.heads), unit: units.join('') };
}

function filled({ head, unit }: { readonly head: string; readonly unit: string }, bytes: number): string {
  const parts = [head];
  for (let length = head.length, n = 0; length < bytes; n += 1) {
    const part = unit.replaceAll('#', String(n));
    length += Buffer.byteLength(part);
    parts.push(part);
  }
  return parts.join('');
}

/** The least of two runs. Refusals are answers, too. */
async function processorMs(work: () => Promise<void>): Promise<number> {
  let least = Infinity;
  for (let run = 0; run < 2; run += 1) {
    const before = process.threadCpuUsage();
    await work().catch((error: unknown) => {
      if (!(error instanceof Error) || error.name !== 'CommandFailure') throw error;
    });
    const { user, system } = process.threadCpuUsage(before);
    least = Math.min(least, (user + system) / 1000);
  }
  return least;
}

describe('time linear in the bytes', () => {
  const random = announceRandom('readers');
  test.each(readers.map((reader) => [reader.name, reader] as const))('%s', async (_name, reader) => {
    const root = await newDirectory();
    const shapes = [
      ...(reader.found ?? []).map(([head, unit]) => ({ head, unit })),
      ...Array.from({ length: rounds({ short: 6, nightly: 400 }) }, () => shapeOf(reader, random)),
    ];
    for (const [n, shape] of shapes.entries()) {
      const directory = path.join(root, String(n));
      mkdirSync(directory);
      const at = (bytes: number) => processorMs(() => reader.read(directory, filled(shape, bytes)));
      const large = await at(4 * smallBytes);
      if (large < judgedMs) continue;
      const small = await at(smallBytes);
      expect(large / small, JSON.stringify({ ...shape, small, large })).toBeLessThan(growthMax);
    }
  });
});
