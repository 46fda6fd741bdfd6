/**
 * Texts and Markdown: each file is one document, with its path as identifier. The front matter of a Markdown file becomes
 * fields of the row. The endings are those of formats that a person can read as they stand. TeX and HTML are not, so such
 * files are counted as others are.
 */
import { globSync, statSync } from 'node:fs';
import path from 'node:path';
import { packedEndings } from '../../blocks.ts';
import { inputError } from '../../failure.ts';
import { isObject } from '../../json.ts';
import { FrontMatterError, readFrontMatter, type KeepsStrings } from './front-matter.ts';
import { openInput, type InputFile } from './input-file.ts';
import type { FileRow, RowFile } from './row-file.ts';

/** A text of a document is far shorter. */
const fileBytesMax = 16 * 1024 * 1024;
const markdown = /\.(?:md|markdown|mdown|mkdn?|mdx|qmd|rmd)$/i;
const plainText = /\.(?:txt|text|rst|adoc|asciidoc|org)$/i;
const endingsShownMax = 20;
const decoder = new TextDecoder('utf-8', { fatal: true });

export function isTextName(name: string): boolean {
  return markdown.test(name) || plainText.test(name);
}

/** Texts that describe the other files of a folder. */
const aboutOthers = /(?:^|\/)(?:readme|licen[cs]e|notice|changelog|citation|contributing)\b[^/]*$/i;

/** The texts of a folder that may be documents, with paths relative to it. */
export function textsIn(directory: string): readonly string[] {
  return filesIn(directory).filter((name) => isTextName(name) && !aboutOthers.test(name));
}

/** All texts below a folder, in the order of their paths. */
export async function openTexts(
  directory: string,
  keepsStrings: KeepsStrings,
): Promise<{ readonly files: readonly RowFile[]; readonly skipped: FileCounts }> {
  const all = filesIn(directory);
  const names = all.filter(isTextName);
  const wanted = new Set(names);
  const skipped = countsByEnding(all.filter((name) => !wanted.has(name)));
  if (names.length === 0) {
    const wayOut = all.some((name) => packedEndings.test(name)) ? ': unpack these first' : '';
    throw inputError(
      `${directory} holds neither corpus.jsonl nor corpus.jsonl.gz, nor files of a dataset, nor .md or .txt files or other texts${skipped.size === 0 ? '' : `, but ${countsText(skipped)}${wayOut}`}`,
    );
  }
  const open = async (name: string): Promise<RowFile> =>
    textFile(await openInput(path.join(directory, name)), name, keepsStrings);
  return { files: await Promise.all(names.map(open)), skipped };
}

/** Ending -> number of files. */
export type FileCounts = ReadonlyMap<string, number>;

/** The files of a folder that an import of other files does not read. */
export function otherFilesIn(directory: string, read: readonly string[]): FileCounts {
  const known = new Set(read);
  return countsByEnding(filesIn(directory).filter((name) => !known.has(path.join(directory, name))));
}

/** `.pdf (3), .png (1)`, the most first. */
export function countsText(counts: FileCounts): string {
  const sorted = [...counts].toSorted(([, one], [, other]) => other - one);
  const named = sorted.slice(0, endingsShownMax).map(([ending, count]) => `${ending} (${count})`);
  return [...named, ...(sorted.length > named.length ? ['...'] : [])].join(', ');
}

/** Names that begin with a dot are left out. */
function filesIn(directory: string): readonly string[] {
  return globSync('**/*', { cwd: directory })
    .map((name) => name.split(path.sep).join('/'))
    .filter((name) => !/(^|\/)\./.test(name))
    .filter((name) => statSync(path.join(directory, name), { throwIfNoEntry: false })?.isFile() === true)
    .toSorted();
}

function countsByEnding(names: readonly string[]): FileCounts {
  const endingOf = (name: string): string => path.extname(name).toLowerCase() || 'no ending';
  return new Map([...Map.groupBy(names, endingOf)].map(([ending, found]) => [ending, found.length]));
}

export function textFile(input: InputFile, docId: string, keepsStrings?: KeepsStrings): RowFile {
  const { name, bytes, version } = input;
  return {
    name,
    bytes,
    version,
    rowCount: 1,
    async *rows() {
      yield { ...(await rowOf(input, docId, keepsStrings)), bytesRead: bytes };
    },
  };
}

async function rowOf(
  input: InputFile,
  docId: string,
  keepsStrings?: KeepsStrings,
): Promise<Pick<FileRow, 'line' | 'parsed'>> {
  const problem = (words: string, line = 1) => ({ line, parsed: { problem: words } });
  if (input.bytes > fileBytesMax) return problem(`the file has more than ${fileBytesMax} bytes`);
  const bytes = await input.slice(0, input.bytes);
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    return problem('not valid UTF-8');
  }
  if (!markdown.test(docId)) return { line: 1, parsed: { object: { doc_id: docId, text } } };
  try {
    const { content, body } = readFrontMatter(text, keepsStrings);
    const given = content ?? {};
    if (!isObject(given)) return problem('the front matter is not a list of names and values', 2);
    const fields = Object.entries(given).filter(([, value]) => value !== null && value !== undefined);
    return { line: 1, parsed: { object: { doc_id: docId, ...Object.fromEntries(fields), text: body } } };
  } catch (error) {
    if (!(error instanceof FrontMatterError)) throw error;
    return problem(`cannot understand the front matter: ${error.message}`, error.line);
  }
}
