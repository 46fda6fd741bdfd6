/** Text that the benchmarks encode and store. */
import { createReadStream, existsSync, readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { z } from 'zod';
import { root } from './environment.ts';

const beirLine = z.object({ title: z.string().default(''), text: z.string().default('') });

/** The longest chunk of the service's own chunking defaults. */
export const chunkTokensMax = 256;

export interface Texts {
  readonly name: string;
  readonly documents: readonly string[];
  /** Queries of the collection. Package documentation has none, so the first words of its documents are the queries, in their order. */
  readonly queries: readonly string[];
}

/** The first documents and all queries of a BEIR directory, else of the documentation of the installed packages. */
export async function readTexts(count: number, beir: string | undefined): Promise<Texts> {
  if (beir !== undefined) {
    const documents: string[] = [];
    for await (const { title, text } of beirLines(beir, 'corpus')) {
      documents.push([title, text].filter((part) => part !== '').join(' '));
      if (documents.length >= count) break;
    }
    const queries: string[] = [];
    for await (const { text } of beirLines(beir, 'queries')) queries.push(text);
    return { name: path.basename(beir), documents, queries };
  }
  const documents = packageTexts(count);
  const queries = documents.map((text, at) =>
    text
      .split(' ')
      .slice(0, 6 + (at % 10))
      .join(' '),
  );
  return { name: 'the installed packages', documents, queries };
}

/**
 * Exactly `count` documents. Where there are fewer, the first half of each is joined with the second half of another, round after
 * round.
 */
export function multiplied({ name, documents, queries }: Texts, count: number): Texts {
  const first = (words: readonly string[]): readonly string[] => words.slice(0, words.length / 2);
  const second = (words: readonly string[]): readonly string[] => words.slice(words.length / 2);
  const wordsAt = (at: number): readonly string[] => documents[at % documents.length]!.split(' ');
  const made = Array.from({ length: Math.max(0, count - documents.length) }, (_, i) => {
    const round = 1 + Math.floor(i / documents.length);
    return [...first(wordsAt(i)), ...second(wordsAt(i + round))].join(' ');
  });
  return made.length === 0
    ? { name, documents, queries }
    : {
        name: `${name}, ${documents.length} documents multiplied`,
        documents: [...documents, ...made],
        queries,
      };
}

/** The objects of a part of a BEIR directory (arXiv 2104.08663), plain or gzipped, a line each. */
async function* beirLines(beir: string, part: 'corpus' | 'queries') {
  const plain = path.join(beir, `${part}.jsonl`);
  const bytes = existsSync(plain)
    ? createReadStream(plain)
    : // Nobody waits for the end, because a reader stops when it has enough. Errors reach the reader.
      pipeline(createReadStream(`${plain}.gz`), createGunzip(), () => undefined);
  let rest = '';
  // JSON may hold characters that `node:readline` takes for the end of a line.
  for await (const piece of bytes.setEncoding('utf8')) {
    const lines = (rest + String(piece)).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line.trim() !== '') yield beirLine.parse(JSON.parse(line));
  }
  if (rest.trim() !== '') yield beirLine.parse(JSON.parse(rest));
}

/** Paragraphs of the documentation that the installed packages and this project bring: real text on every machine. */
export function packageTexts(count: number): readonly string[] {
  const files = [path.join(root, 'README.md'), ...readmesUnder(path.join(root, 'node_modules'))];
  const texts: string[] = [];
  for (const file of files) {
    const words = readFileSync(file, 'utf8')
      .replaceAll(/[#*_`|<>[\]()-]+/g, ' ')
      .split(/\s+/)
      .filter((word) => word !== '');
    // Lengths vary from 40 to 440 words, as those of real documents do.
    for (let from = 0; from + 40 < words.length && texts.length < count;) {
      const length = 40 + ((texts.length * 7919) % 401);
      texts.push(words.slice(from, from + length).join(' '));
      from += length;
    }
    if (texts.length >= count) break;
  }
  return texts;
}

function readmesUnder(directory: string): readonly string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    if (!entry.isDirectory() || entry.name.startsWith('.')) return [];
    const folder = path.join(directory, entry.name);
    if (entry.name.startsWith('@')) return readmesUnder(folder);
    return readdirSync(folder)
      .filter((name) => /^readme\.md$/i.test(name))
      .map((name) => path.join(folder, name));
  });
}

/** The first bytes of a text, fewer than `bytes`. A character that the cut would split is left out. */
export function cutToBytes(text: string, bytes: number): string {
  return Buffer.from(text)
    .subarray(0, bytes - 4)
    .toString()
    .replaceAll('\u{fffd}', '');
}
