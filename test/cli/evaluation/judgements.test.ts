/** The forms of relevance judgements that an evaluation reads, and the lines that it refuses. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { readJudgements } from '../../../src/cli/evaluation/judgements.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';

/** Query -> document -> grade. */
async function judgementsIn(text: string, name = 'qrels.tsv'): Promise<unknown> {
  const file = path.join(await newDirectory(), name);
  writeFileSync(file, text);
  const judgements = await readJudgements([file]);
  return Object.fromEntries([...judgements].map(([query, grades]) => [query, Object.fromEntries(grades)]));
}

describe('judgements', () => {
  it.each([
    ['grades that are no integers, without a header', 'q1\td1\t0.5\nq2\td2\t1\n'],
    ['the header of BEIR', 'query-id\tcorpus-id\tscore\nq1\td1\t0.5\nq2\td2\t1\n'],
    ['another header, in another order', 'Relevance\tdoc_id\tquery_id\n0.5\td1\tq1\n1\td2\tq2\n'],
    ['a header behind a byte order mark, and CRLF', '\ufeffqid\tdocno\trel\r\nq1\td1\t0.5\r\nq2\td2\t1\r\n'],
    ['three columns between spaces', 'q1 d1 .5\nq2  d2 1e0\n'],
    ['the four columns of TREC between spaces', 'q1 0 d1 0.5\nq2 0 d2 1\n'],
    ['the four columns of TREC between tabs', 'q1\tQ0\td1\t0.5\nq2\tQ0\td2\t1\n'],
    ['the four columns of ir_datasets', 'q1\td1\t0.5\t0\nq2\td2\t1\t0\n'],
  ])('are read with %s', async (_, text) => {
    expect(await judgementsIn(text)).toEqual({ q1: { d1: 0.5 }, q2: { d2: 1 } });
  });

  it.each(['qrels.jsonl', 'qrels.json'])('are read from %s', async (name) => {
    const text =
      '{"query_id":"q1","doc_id":"d1","relevance":2,"iteration":"0"}\n{"query-id":2,"corpus-id":7,"score":0.5}\n';
    expect(await judgementsIn(text, name)).toEqual({ q1: { d1: 2 }, 2: { 7: 0.5 } });
  });

  it('have the order of the documents where all four columns are numbers', async () => {
    expect(await judgementsIn('1 4.5 31 1\n1 4.5 32 0\n2 5 33 2\n')).toEqual({
      1: { 31: 1, 32: 0 },
      2: { 33: 2 },
    });
    expect(await judgementsIn('1\t31\t1\t4.5\n1\t32\t0\t4.5\n2\t33\t1\t4.5\n')).toEqual({
      1: { 31: 1, 32: 0 },
      2: { 33: 1 },
    });
  });

  it('may have spaces in identifiers between tabs', async () => {
    expect(await judgementsIn('q 1\td 1\t1\n')).toEqual({ 'q 1': { 'd 1': 1 } });
  });

  it('may repeat a line', async () => {
    expect(await judgementsIn('q\td\t1\nq\td\t1\n')).toEqual({ q: { d: 1 } });
  });

  it.each([
    ['a header of unknown names', 'q\td\tg\nq\td\t1\n', 'qrels.tsv:1: the grade is not a number'],
    ['a grade that is no number', 'q\td\t1\nq\te\tL1\n', 'qrels.tsv:2: the grade is not a number'],
    ['an infinite grade', 'q\td\t1e999\n', 'qrels.tsv:1: the grade is not a number'],
    ['a bad grade of ir_datasets', 'q\td\t1\t0\nq\te\tx\t0\n', 'qrels.tsv:2: the grade is not a number'],
    ['a bad grade of TREC', 'q 0 d 1\nq 0 e x\n', 'qrels.tsv:2: the grade is not a number'],
    ['a missing column', 'q 0 d 1\nq 0 1\n', 'qrels.tsv:2: 3 columns instead of 4'],
    ['too many columns', 'q 0 d 1 2\n', 'qrels.tsv:1: 5 columns instead of 3 or 4'],
    ['no query', '\td\t1\n', 'qrels.tsv:1: no id of a query'],
    ['no document', 'q\td\t1\nq\t\t1\n', 'qrels.tsv:2: no id of a document'],
    ['two grades of one document', 'q\td\t1\nq\td\t2\n', 'qrels.tsv:2: document d has the grade 2'],
  ])('with %s are refused by the line', async (_, text, message) => {
    await expect(judgementsIn(text)).rejects.toThrow(message);
  });

  it('without a grade are refused by the line of JSON', async () => {
    const text = '{"query_id":"q","doc_id":"d","relevance":1}\n{"query_id":"q","doc_id":"d"}\n';
    await expect(judgementsIn(text, 'a.jsonl')).rejects.toThrow('a.jsonl:2: the grade is not a number');
  });
});
