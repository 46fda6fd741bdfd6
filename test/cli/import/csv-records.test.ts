/** Records of CSV: legal files as they were written, and quotation marks that are wrong. */
import { parse } from 'csv-parse/sync';
import { array, assert, asyncProperty, boolean, constantFrom, integer, string } from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  readRecords,
  type CsvRecord,
  type RecordFormat,
} from '../../../src/cli/import/sources/csv-records.ts';

const csv: RecordFormat = { delimiter: ',', hasQuotes: true, lineEnd: '\n' };

async function recordsOf(text: string, format = csv, partLength = 1000): Promise<CsvRecord[]> {
  const parts = async function* (): AsyncGenerator<string> {
    for (let start = 0; start < text.length; start += partLength) yield text.slice(start, start + partLength);
  };
  const records: CsvRecord[] = [];
  for await (const record of readRecords(parts(), format)) records.push(record);
  return records;
}

/** The line of each record, with its cells or the beginning of the problem. */
async function linesOf(text: string, format = csv): Promise<readonly unknown[]> {
  const records = await recordsOf(text, format);
  return records.map((record) => [
    record.line,
    'cells' in record ? record.cells : /^(?:lines \d+ to \d+|[^:]+)/.exec(record.problem)![0],
  ]);
}

const inside = 'a quotation mark stands within a cell';
const behind = 'text follows a quotation mark that ends a cell';
const unclosed = 'a quotation mark begins a cell, and none ends it';

describe('records of CSV', () => {
  it('are those that were written, wherever the text is cut', async () => {
    const cell = string({ unit: constantFrom('a', ',', '"', '\n', '\r\n', ';', ' ', 'ä') });
    const table = integer({ min: 2, max: 4 }).chain((width) =>
      array(array(cell, { minLength: width, maxLength: width }), { minLength: 1, maxLength: 8 }),
    );
    await assert(
      asyncProperty(
        table,
        constantFrom('\n', '\r\n'),
        integer({ min: 1, max: 9 }),
        boolean(),
        async (rows, end, partLength, quotesAll) => {
          const written = (text: string): string =>
            quotesAll || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
          const text = rows.map((row) => row.map(written).join(',') + end).join('');
          const records = await recordsOf(text, csv, partLength);
          expect(records.map((record) => ('cells' in record ? record.cells : record))).toEqual(rows);
          expect(parse(text, { record_delimiter: end })).toEqual(rows);
        },
      ),
    );
  });

  it('hold every line of any text once: as a row, a part of a named row, or a refusal', async () => {
    const text = string({
      unit: constantFrom('"', ',', '\n', 'a', '""', '",', ',"', '"\n'),
      maxLength: 60,
    });
    await assert(
      asyncProperty(text, integer({ min: 1, max: 9 }), async (body, partLength) => {
        const whole = `x,y\n${body}`;
        const lines = whole.split('\n');
        const records = await recordsOf(whole, csv, partLength);
        for (const [place, record] of records.entries()) {
          const next = records[place + 1]?.line ?? lines.length + 1;
          const held = lines.slice(record.line - 1, next - 1);
          const isOneLine = held.slice(1).every((line) => line === '');
          if ('problem' in record) {
            const [, last = record.line] = /^lines \d+ to (\d+)/.exec(record.problem) ?? [];
            expect(lines.slice(Number(last), next - 1).join('')).toBe('');
            continue;
          }
          if (isOneLine && record.remark === undefined) {
            expect(parse(held[0]!)).toEqual([record.cells]);
            continue;
          }
          expect(record.remark).toMatch(/cell of several lines/);
          expect(parse(held.join('\n').replace(/\n+$/, ''), { record_delimiter: '\n' })).toEqual([
            record.cells,
          ]);
          const hasRow = held.slice(1).some((line) => !line.includes('"') && line.split(',').length === 2);
          if (hasRow) expect(record.remark).toMatch(/looks like a row/);
        }
      }),
      { numRuns: 500 },
    );
  });

  it.each([
    [
      '1,He said "hi"\n2,ok\n',
      [
        [2, inside],
        [3, ['2', 'ok']],
      ],
    ],
    [
      '1,"Hello" he said\n2,ok\n',
      [
        [2, behind],
        [3, ['2', 'ok']],
      ],
    ],
    [
      '1,19" monitor\n2,ok\n3,"two\nlines"\n',
      [
        [2, inside],
        [3, ['2', 'ok']],
        [4, ['3', 'two\nlines']],
      ],
    ],
    [
      '1,"unclosed\n2,ok\n3,also\n',
      [
        [2, unclosed],
        [3, ['2', 'ok']],
        [4, ['3', 'also']],
      ],
    ],
    [
      '1,"unclosed\n2,"ok"\n3,also\n',
      [
        [2, unclosed],
        [3, ['2', 'ok']],
        [4, ['3', 'also']],
      ],
    ],
    // The second mark ends a cell far behind, whose row would have too many cells.
    [
      '1,"unclosed\n2,ok\n3,odd",x\n4,fine\n',
      [
        [2, 'lines 2 to 4'],
        [3, ['2', 'ok']],
        [4, inside],
        [5, ['4', 'fine']],
      ],
    ],
    // No line in it is a row, so all of it is one refusal.
    [
      '1,b,"two\nlines"\n2,ok\n',
      [
        [2, 'lines 2 to 3'],
        [4, ['2', 'ok']],
      ],
    ],
  ])('of %j refuse the line with the wrong mark alone', async (body, expected) => {
    expect((await linesOf(`id,text\n${body}`)).slice(1)).toEqual(expected);
  });

  it('of several lines are marked, and those that hold a line like a row are set apart', async () => {
    const records = await recordsOf('id,text\n1,"a\nb"\n2,"c\n3,d\n4,e"\n');
    expect(records.map((record) => ('cells' in record ? record.remark : record))).toEqual([
      undefined,
      'have a cell of several lines',
      expect.stringMatching(/^have a cell of several lines, one of which looks like a row/),
    ]);
  });

  it('without quoting are lines that keep their marks', async () => {
    const format = { delimiter: '\t', hasQuotes: false, lineEnd: '\n' } as const;
    const text =
      'id\ttext\n1\tHe said "hi"\r\n2\t"Hello" he said\n3\t19" monitor\n4\t"unclosed\n5\t"whole"\n';
    expect(await linesOf(text, format)).toEqual([
      [1, ['id', 'text']],
      [2, ['1', 'He said "hi"']],
      [3, ['2', '"Hello" he said']],
      [4, ['3', '19" monitor']],
      [5, ['4', '"unclosed']],
      [6, ['5', '"whole"']],
    ]);
    expect((await recordsOf(text, format)).at(-1)).toMatchObject({
      remark: expect.stringMatching(/which stay/),
    });
  });

  it('have a bound, behind which reading goes on', async () => {
    const long = 'x'.repeat(17 * 1024 * 1024);
    const lines = await linesOf(`id,text\n1,${long}\n2,"${'y\n'.repeat(100_000)}"\n3,ok\n`);
    expect(lines.slice(0, 3)).toEqual([
      [1, ['id', 'text']],
      [2, 'the line has more than 16777216 characters'],
      [3, unclosed],
    ]);
    expect(lines.at(-1)).toEqual([100_004, ['3', 'ok']]);
  });
});
