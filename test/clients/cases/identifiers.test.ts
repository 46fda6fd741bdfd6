/** Which words an import adds to metadata as identifiers. The client of Python has the same cases. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { MaxsimdError } from '../../../clients/typescript/src/errors.ts';
import { cuttingOf, partsOf } from '../../../clients/typescript/src/import/cut.ts';
import { identifiersIn } from '../../../clients/typescript/src/import/identifiers.ts';
import type { AddedFields } from '../../../clients/typescript/src/import/metadata.ts';
import { requestPart } from '../../../clients/typescript/src/import/request-part.ts';
import type { Document } from '../../../clients/typescript/src/types.ts';
import { DocumentReader, isProblem } from '../../../src/cli/import/document.ts';
import { announceRandom } from '../../support/running/random.ts';

type Repeated = readonly (readonly [string, number])[];

interface Case {
  readonly name: string;
  readonly title?: Repeated;
  readonly text: Repeated;
  readonly metadata?: Readonly<Record<string, Repeated>>;
  readonly keep_text?: string;
  readonly kept: readonly string[] | number;
  readonly left_out?: number;
}

const { cases } = JSON.parse(readFileSync(new URL('identifiers.json', import.meta.url), 'utf8')) as {
  readonly cases: readonly Case[];
};

const written = (pieces: Repeated): string => pieces.map(([piece, times]) => piece.repeat(times)).join('');

function metadataOf({ metadata = {} }: Case): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(metadata).map(([name, value]) => [name, written(value)]));
}

/** The metadata that a request carries. */
function sentMetadata(document: Document, added: AddedFields): Readonly<Record<string, unknown>> {
  const part = requestPart(document, added);
  if (part instanceof MaxsimdError) throw part;
  return (JSON.parse(part.json) as Document).metadata ?? {};
}

describe('words that look like identifiers', () => {
  test.each(cases)('$name', (given) => {
    const text = written([
      ...(given.title ?? []),
      ...(given.title ? [[' ', 1] as const] : []),
      ...given.text,
    ]);
    const added = { keepText: given.keep_text, identifiers: 'codes' };
    const { codes, ...others } = sentMetadata({ doc_id: 'd', text, metadata: metadataOf(given) }, added);
    if (typeof given.kept === 'number') expect(codes).toHaveLength(given.kept);
    else expect(codes).toEqual(given.kept.length === 0 ? undefined : given.kept);
    expect(others).toEqual({ ...metadataOf(given), ...(given.keep_text && { [given.keep_text]: text }) });
  });

  test.each(cases)('$name: the command line counts them', (given) => {
    const reader = new DocumentReader({ keepText: given.keep_text, identifiers: 'codes' });
    const object = {
      id: 'd',
      title: written(given.title ?? []),
      text: written(given.text),
      metadata: metadataOf(given),
    };
    const { item } = reader.read({ file: 'f', line: 1, number: 1, bytesRead: 0, parsed: { object } });
    // An empty text is no document.
    if (isProblem(item)) throw new Error(item.error);
    const words = typeof given.kept === 'number' ? given.kept : given.kept.length;
    expect(reader.identifiers).toEqual({
      documents: Math.min(words, 1),
      words,
      leftOut: given.left_out ?? 0,
    });
  });

  test('belong to the part of a cut text that has them, which keeps room for them', () => {
    const random = announceRandom('identifiers of parts');
    const words = ['word ', 'A sentence. ', 'B2B\n\n', '\\ ', '好'];
    const text = Array.from({ length: 20_000 }, (_, at) => random.pick([...words, `E${at}.65, `])).join('');
    const added = { keepText: 'body', identifiers: 'codes' };
    const parts = partsOf({ doc_id: 'd', text }, cuttingOf({ cut: true, ...added }));
    if (parts instanceof MaxsimdError) throw parts;
    expect(parts.length).toBeGreaterThan(4);
    expect(identifiersIn(parts[0]!.text)).toHaveLength(64);
    for (const part of parts) expect(sentMetadata(part, added)['codes']).toEqual(identifiersIn(part.text));
  });

  test('take time in proportion to the text', () => {
    for (const piece of ['x', '.', '好', '好\u0301', ' ', '1.'])
      expect(identifiersIn(piece.repeat(1_000_000))).toEqual([]);
  });

  test.each([
    [{ codes: ['mine'] }, 'metadata.codes: the import adds a field of this name'],
    [{ body: 'mine' }, 'metadata.body: the import adds a field of this name'],
  ])('are not added beside %j', (metadata, error) => {
    const added = { keepText: 'body', identifiers: 'codes' };
    expect(requestPart({ doc_id: 'd', text: 'plain', metadata }, added)).toEqual(new MaxsimdError(error));
  });

  test('have a field of their own', () => {
    const both = { keepText: 'body', identifiers: 'body' };
    expect(() => new DocumentReader(both)).toThrow('"body" cannot keep both the text and the identifiers');
    expect(() => cuttingOf({ cut: true, ...both })).toThrow('"body" cannot keep both');
  });
});
