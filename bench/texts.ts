/** Text that the benchmarks encode and store. */
import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { beirFile, documentText } from '../src/cli/beir/directory.ts';
import { readQueries } from '../src/cli/beir/judgements.ts';
import { parseLine, readLines } from '../src/cli/jsonl.ts';
import { root } from './environment.ts';

export interface Texts {
  readonly name: string;
  readonly documents: readonly string[];
  /** Of the collection; those of package documentation are first words of its documents, in their order. */
  readonly queries: readonly string[];
}

/** The first documents and all queries of a BEIR directory, else of the documentation of the installed packages. */
export async function readTexts(count: number, beir: string | undefined): Promise<Texts> {
  if (beir !== undefined) {
    const queries = await readQueries(beir);
    return {
      name: path.basename(beir),
      documents: await beirDocuments(beir, count),
      queries: queries.map(({ text }) => text),
    };
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

async function beirDocuments(beir: string, count: number): Promise<readonly string[]> {
  const documents: string[] = [];
  for await (const line of readLines(beirFile(beir, 'corpus'))) {
    const parsed = parseLine(line);
    if ('problem' in parsed) throw new Error(`${beir}: corpus line ${line.number}: ${parsed.problem}`);
    const { title, text } = parsed.object;
    documents.push(documentText(stringOf(title), stringOf(text)));
    if (documents.length >= count) break;
  }
  return documents;
}

function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
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
    // Lengths vary as those of real documents do: 40 to 440 words.
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
