/** Reads the built files of the console (`src/console`), once. */
import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';

export interface PageFile {
  readonly type: string;
  readonly bytes: Buffer;
}

export type ConsolePage = ReadonlyMap<string, PageFile>;

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

export async function readConsolePage(directory: string): Promise<ConsolePage> {
  const names = (await readdir(directory)).filter((name) => path.extname(name) in types);
  const files = names.map(async (name): Promise<[string, PageFile]> => {
    const bytes = await readFile(path.join(directory, name));
    return [name, { type: types[path.extname(name)]!, bytes }];
  });
  return new Map(await Promise.all(files));
}
