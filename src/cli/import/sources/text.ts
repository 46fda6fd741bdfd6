/**
 * Texts and Markdown: each file is one document, with its path as identifier. The front matter of a Markdown file becomes
 * fields of the row.
 */
import { globSync, statSync } from 'node:fs';
import path from 'node:path';
import { inputError } from '../../failure.ts';
import { isObject } from '../../json.ts';
import { FrontMatterError, readFrontMatter } from './front-matter.ts';
import { openInput, type InputFile } from './input-file.ts';
import type { FileRow, RowFile } from './row-file.ts';

/** A text of a document is far shorter. */
const fileBytesMax = 16 * 1024 * 1024;
const decoder = new TextDecoder('utf-8', { fatal: true });

/** All texts below a folder, in the order of their paths. Names that begin with a dot are left out. */
export async function openTexts(directory: string): Promise<readonly RowFile[]> {
  const names = globSync('**/*', { cwd: directory })
    .map((name) => name.split(path.sep).join('/'))
    .filter((name) => /\.(md|txt)$/i.test(name) && !/(^|\/)\./.test(name))
    .filter((name) => statSync(path.join(directory, name), { throwIfNoEntry: false })?.isFile() === true)
    .toSorted();
  if (names.length === 0)
    throw inputError(
      `${directory} holds neither corpus.jsonl nor corpus.jsonl.gz, nor files of a dataset, nor .md or .txt files`,
    );
  return Promise.all(names.map(async (name) => textFile(await openInput(path.join(directory, name)), name)));
}

export function textFile(input: InputFile, docId: string): RowFile {
  const { name, bytes, version } = input;
  return {
    name,
    bytes,
    version,
    rowCount: 1,
    async *rows() {
      yield { ...(await rowOf(input, docId)), bytesRead: bytes };
    },
  };
}

async function rowOf(input: InputFile, docId: string): Promise<Pick<FileRow, 'line' | 'parsed'>> {
  const problem = (words: string, line = 1) => ({ line, parsed: { problem: words } });
  if (input.bytes > fileBytesMax) return problem(`the file has more than ${fileBytesMax} bytes`);
  const bytes = await input.slice(0, input.bytes);
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    return problem('not valid UTF-8');
  }
  if (!/\.md$/i.test(docId)) return { line: 1, parsed: { object: { doc_id: docId, text } } };
  try {
    const { content, body } = readFrontMatter(text);
    const given = content ?? {};
    if (!isObject(given)) return problem('the front matter is not a list of names and values', 2);
    const fields = Object.entries(given).filter(([, value]) => value !== null && value !== undefined);
    return { line: 1, parsed: { object: { doc_id: docId, ...Object.fromEntries(fields), text: body } } };
  } catch (error) {
    if (!(error instanceof FrontMatterError)) throw error;
    return problem(`cannot understand the front matter: ${error.message}`, error.line);
  }
}
