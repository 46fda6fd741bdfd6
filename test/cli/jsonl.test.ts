import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseLine, readLines, type Line } from '../../src/cli/jsonl.ts';
import { newDirectory } from '../support/machine/temporary-directory.ts';

const directory = await newDirectory();

async function read(name: string, content: string | Buffer, lineBytesMax?: number): Promise<readonly Line[]> {
  const file = path.join(directory, name);
  writeFileSync(file, content);
  const lines: Line[] = [];
  for await (const line of readLines(file, lineBytesMax === undefined ? {} : { lineBytesMax }))
    lines.push(line);
  return lines;
}

const texts = (lines: readonly Line[]): readonly (readonly [number, string | undefined])[] =>
  lines.map((line) => [line.number, line.bytes?.toString('utf8')]);

describe('lines of a JSONL file', () => {
  it('are numbered from 1, blank ones counted and passed over', async () => {
    expect(texts(await read('a.jsonl', 'one\n\n  \r\nfour\nfive'))).toEqual([
      [1, 'one'],
      [4, 'four'],
      [5, 'five'],
    ]);
  });

  it('are split at line feeds only: U+2028 and U+2029 may stand inside a JSON string', async () => {
    const line = JSON.stringify({ text: 'a\u2028b\u2029c' });
    const [first] = await read('b.jsonl', `${line}\n`);
    expect(parseLine(first as Line)).toEqual({ object: { text: 'a\u2028b\u2029c' } });
  });

  it('come out of a gzipped file as out of a plain one', async () => {
    const content = Buffer.concat([gzipSync('one\ntw'), gzipSync('o\nthree\n')]);
    expect(texts(await read('c.jsonl.gz', content))).toEqual([
      [1, 'one'],
      [2, 'two'],
      [3, 'three'],
    ]);
  });

  it('over the limit are reported without being held, and the next one is read', async () => {
    const lines = await read('d.jsonl', `${'x'.repeat(300_000)}\nshort\n`, 1000);
    expect(texts(lines)).toEqual([
      [1, undefined],
      [2, 'short'],
    ]);
    expect(parseLine(lines[0] as Line)).toEqual({ problem: 'line is too long' });
  });

  it('survive any cut of the file into blocks', async () => {
    const row = fc
      .string({ unit: 'grapheme', minLength: 1, maxLength: 60 })
      .map((text) => JSON.stringify({ text }));
    await fc.assert(
      fc.asyncProperty(fc.array(row, { maxLength: 50 }), async (rows) => {
        const lines = await read('e.jsonl', rows.map((text) => `${text}\n`).join(''));
        expect(lines.map((line) => line.bytes?.toString('utf8'))).toEqual(rows);
      }),
      { numRuns: 30 },
    );
  });

  it('of a damaged gzip file end in a failure that names the file', async () => {
    const whole = gzipSync('one\n'.repeat(10_000));
    await expect(read('f.jsonl.gz', whole.subarray(0, whole.length - 20))).rejects.toThrow(
      /cannot read .*f\.jsonl\.gz/,
    );
  });

  it('that are no JSON object are a problem whose words do not quote the line', () => {
    const secret = 'confidential words';
    for (const bytes of [Buffer.from(secret), Buffer.from(`"${secret}"`), Buffer.from([0xff, 0x61])]) {
      const parsed = parseLine({ number: 1, bytes, fileBytesRead: 0 });
      expect(parsed).toHaveProperty('problem');
      expect(JSON.stringify(parsed)).not.toContain('confidential');
    }
  });
});
