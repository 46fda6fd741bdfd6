/** The texts that the benchmarks share. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, it, onTestFinished } from 'vitest';
import { multiplied, readTexts } from './texts.ts';

it('of a BEIR directory are its first documents, titles in front, and all its queries', async () => {
  const directory = mkdtempSync(path.join(tmpdir(), 'maxsimd-test-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const lines = (rows: readonly object[]): string => rows.map((row) => `${JSON.stringify(row)}\n`).join('');
  const documents = [{ _id: '1', title: 'One', text: 'and more' }, { _id: '2', text: 'two' }, { _id: '3' }];
  writeFileSync(path.join(directory, 'corpus.jsonl'), lines(documents));
  writeFileSync(
    path.join(directory, 'queries.jsonl.gz'),
    gzipSync(lines([{ _id: 'a', text: 'wh\u2028at' }])),
  );
  expect(await readTexts(2, directory)).toEqual({
    name: path.basename(directory),
    documents: ['One and more', 'two'],
    queries: ['wh\u2028at'],
  });
});

it('of the installed packages are as many as asked for, and a query begins each', async () => {
  const { documents, queries } = await readTexts(12, undefined);
  expect(documents).toHaveLength(12);
  expect(queries).toHaveLength(12);
  for (const [at, query] of queries.entries()) {
    expect(query.split(' ')).toHaveLength(6 + (at % 10));
    expect(documents[at]!.startsWith(`${query} `)).toBe(true);
  }
});

it('are made of halves where there are too few', () => {
  const texts = { name: 'two', documents: ['a b c d', 'e f g'], queries: ['q'] };
  expect(multiplied(texts, 2)).toEqual(texts);
  expect(multiplied(texts, 5)).toEqual({
    name: 'two, 2 documents multiplied',
    documents: ['a b c d', 'e f g', 'a b f g', 'e c d', 'a b c d'],
    queries: ['q'],
  });
});
