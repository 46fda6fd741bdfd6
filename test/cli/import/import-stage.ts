/** What imports as a process are run against: a double of the service, an input, a state directory. */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { ApiDouble, type SeenRequest } from '../../support/http/api-double.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import type { RunOptions } from '../../support/commands/command-here.ts';

export interface ImportStage {
  readonly api: ApiDouble;
  readonly directory: string;
  /** XDG_STATE_HOME of the processes. */
  readonly stateHome: string;
  readonly options: RunOptions;
}

export async function startImportStage(): Promise<ImportStage> {
  const api = new ApiDouble();
  const [directory, stateHome] = await Promise.all([newDirectory(), newDirectory()]);
  const environment = {
    MAXSIMD_URL: await api.listen(),
    MAXSIMD_API_KEY: 'qkv_live_test',
    XDG_STATE_HOME: stateHome,
  };
  return { api, directory, stateHome, options: { environment } };
}

export function isUpsert(request: SeenRequest): boolean {
  return request.path.endsWith('/documents');
}

export function rows(count: number): readonly object[] {
  return Array.from({ length: count }, (_, position) => ({ id: `d${position}`, text: `text ${position}` }));
}

/** Writes a file, with the folders to it. */
export function writeFile(directory: string, name: string, content: string | Buffer): string {
  const file = path.join(directory, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, content);
  return file;
}

/** A line for each. */
export function writeInput(
  directory: string,
  objects: readonly (object | string)[],
  name = 'input.jsonl',
): string {
  const text = objects.map((item) => (typeof item === 'string' ? item : JSON.stringify(item))).join('\n');
  return writeFile(directory, name, name.endsWith('.gz') ? gzipSync(text) : text);
}

/** Those that imports left in the state directory. */
export function stateFilesIn(stateHome: string): readonly string[] {
  const folder = path.join(stateHome, 'maxsimd');
  return existsSync(folder) ? readdirSync(folder) : [];
}
