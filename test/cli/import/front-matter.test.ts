/** Front matter of Markdown: what is read, and the line of what cannot be. */
import { describe, expect, it } from 'vitest';
import { FrontMatterError, readFrontMatter } from '../../../src/cli/import/sources/front-matter.ts';

function errorOf(text: string): string {
  try {
    readFrontMatter(text);
  } catch (error) {
    if (error instanceof FrontMatterError) return `${error.line}: ${error.message}`;
    throw error;
  }
  return 'none';
}

describe('front matter', () => {
  it.each([
    ['---\ntitle: T\ntags: [a, b]\n---\n# Body\n---\n', { title: 'T', tags: ['a', 'b'] }, '# Body\n---\n'],
    ['---\r\nday: 2026-11-27\r\n...\r\nBody', { day: '2026-11-27' }, 'Body'],
    ['--- \n# a comment\n---', null, ''],
    ['---\n---\nBody', null, 'Body'],
    ['---\ntext: |\n  a\n  ---\n---\nBody', { text: 'a\n---\n' }, 'Body'],
  ])('of %j', (text, content, body) => expect(readFrontMatter(text)).toEqual({ content, body }));

  it.each(['', 'Body\n---\n', '----\na: 1\n----\n', ' ---\na: 1\n---\n', '# ---\n'])('is not in %j', (text) =>
    expect(readFrontMatter(text)).toEqual({ content: undefined, body: text }),
  );

  it('keeps the digits of long integers', () => {
    const { content } = readFrontMatter('---\nserial: 1126128864018916581\nn: 7\n---\n');
    expect(JSON.stringify(content)).toBe('{"serial":1126128864018916581,"n":7}');
  });

  it('keeps numbers as strings whose text would change', () => {
    const yaml =
      'code: 0012\nversion: 1.10\nlist: [007, 1.5, 1e3, -2, +3]\ndeep: {hex: 0x1F, nan: .nan}\nlong: 0.12345678901234567891\n012: x\n';
    expect(readFrontMatter(`---\n${yaml}---\n`).content).toEqual({
      code: '0012',
      version: '1.10',
      list: ['007', 1.5, '1e3', -2, '+3'],
      deep: { hex: '0x1F', nan: '.nan' },
      long: '0.12345678901234567891',
      '012': 'x',
    });
  });

  it('keeps numbers and booleans as strings in the fields that are asked for, and leaves what is empty', () => {
    const yaml = 'a: [1, {b: true}, null]\nc: 1\nd: 2\nnone:\nquoted: "5"\n';
    const { content } = readFrontMatter(`---\n${yaml}---\n`, (field) => field !== 'c');
    expect(content).toEqual({ a: ['1', { b: 'true' }, null], c: 1, d: '2', none: null, quoted: '5' });
  });

  it.each([
    ['---\ntitle: T\n', /^1: the front matter has no end/],
    ['---\ntitle: T\nkind: a: b\n---\n', /^3: .*mappings/],
    ['---\r\ntitle: T\r\n\r\nkind: "open\r\n---\r\n', /^[45]: .*closing/],
    ['---\na: &x [*x]\n---\n', /^2: /],
    [`---\nx: ${'y'.repeat(131_072)}\n---\n`, /^1: the front matter has more than 131072 bytes$/],
  ])('that cannot be read names its line: %#', (text, message) => expect(errorOf(text)).toMatch(message));
});
