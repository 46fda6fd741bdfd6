/** How the clients cut long documents. The client of Python has the same cases. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { cuttingOf, partsOf } from '../../../clients/typescript/src/import/cut.ts';
import { MaxsimdError } from '../../../clients/typescript/src/errors.ts';
import { announceRandom } from '../../support/running/random.ts';

type Repeated = readonly (readonly [string, number])[];

interface Case {
  readonly name: string;
  readonly text: Repeated;
  readonly cut: boolean | number;
  readonly keep_text?: string;
  readonly metadata?: Readonly<Record<string, Repeated>>;
  readonly parts?: readonly Part[] | null;
  readonly error?: string;
}

interface Part {
  readonly starts: string;
  readonly ends: string;
  readonly headings: readonly string[] | null;
}

const { cases } = JSON.parse(readFileSync(new URL('cut.json', import.meta.url), 'utf8')) as {
  readonly cases: readonly Case[];
};

const written = (pieces: Repeated): string => pieces.map(([piece, times]) => piece.repeat(times)).join('');

describe('a long document is cut', () => {
  test.each(cases)('$name', ({ text, cut, keep_text: keepText, metadata = {}, parts, error }) => {
    const given = Object.fromEntries(Object.entries(metadata).map(([name, value]) => [name, written(value)]));
    const document = { doc_id: 'manual', text: written(text), metadata: given };
    const found = partsOf(document, cuttingOf({ cut, keepText }));
    if (found instanceof MaxsimdError) {
      expect(found.message).toContain(error ?? 'no error');
      return;
    }
    if (parts === null) {
      expect(found).toEqual([document]);
      return;
    }
    expect(found.map(({ doc_id }) => doc_id)).toEqual(parts?.map((_part, place) => `manual#${place + 1}`));
    for (const [place, { starts, ends, headings }] of (parts ?? []).entries()) {
      const part = found[place]!;
      expect(part.text.startsWith(starts)).toBe(true);
      expect(part.text.endsWith(ends)).toBe(true);
      expect(part.metadata).toEqual({
        part_of: 'manual',
        part: place + 1,
        ...(headings !== null && { headings }),
      });
    }
    expect(
      found
        .map((part) => part.text)
        .join('')
        .replaceAll(/\s/gu, ''),
    ).toBe(document.text.replaceAll(/\s/gu, ''));
  });

  test('into parts that keep every character and fit, whatever the text', () => {
    const random = announceRandom('cut documents');
    const pieces = [
      'word ',
      'A sentence. ',
      '\n\n',
      '\n',
      '# Head\n',
      '## Sub ##\n',
      '```\n',
      'é',
      '😀',
      '。',
      '"',
      '\\',
      '\u0001',
      'x'.repeat(99),
    ];
    for (let round = 0; round < 200; round += 1) {
      const text = Array.from({ length: 600 }, () => random.pick(pieces)).join('');
      const found = partsOf({ doc_id: 'd', text, metadata: {} }, cuttingOf({ cut: 2000, keepText: 'body' }));
      if (found instanceof MaxsimdError) throw found;
      expect(found.length).toBeGreaterThan(1);
      for (const part of found) {
        expect(Buffer.byteLength(part.text)).toBeLessThanOrEqual(2000);
        expect(Buffer.byteLength(JSON.stringify({ ...part.metadata, body: part.text }))).toBeLessThanOrEqual(
          16_384,
        );
      }
      expect(
        found
          .map((part) => part.text)
          .join('')
          .replaceAll(/\s/gu, ''),
      ).toBe(text.replaceAll(/\s/gu, ''));
    }
  });

  test.each([0, 1023, 102_401, 1500.5, Number.NaN])('not at %s bytes', (cut) => {
    expect(() => cuttingOf({ cut })).toThrow('cut: bytes of text from 1024 to 102400, or true');
  });
});
