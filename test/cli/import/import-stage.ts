/** Runs imports as processes, against a double of the service, with an input and a state directory. */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, expect } from 'vitest';
import { ApiDouble, type SeenRequest } from '../../support/http/api-double.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import type { RunOptions } from '../../support/commands/command-here.ts';
import { runJsonHere } from '../../support/commands/command-process.ts';

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

/** A stage of its own for each test of a file, and imports into an index of it. */
export function useImportStage(index: string) {
  let stage: Omit<ImportStage, 'options'> & { options: RunOptions };
  beforeEach(async () => {
    stage = await startImportStage();
  });
  afterEach(() => stage.api.close());
  const importFrom = (source: string, ...more: readonly string[]): ReturnType<typeof runJsonHere> =>
    runJsonHere(['import', source, '--index', index, ...more], stage.options);
  return {
    get api() {
      return stage.api;
    },
    get directory() {
      return stage.directory;
    },
    get options() {
      return stage.options;
    },
    set options(options) {
      stage.options = options;
    },
    file: (name: string, content: string | Buffer): string => writeFile(stage.directory, name, content),
    importFrom,
    /** Nothing was asked of the service. */
    expectRefused: async (source: string, message: RegExp, ...more: readonly string[]): Promise<void> => {
      const { exitCode, document } = await importFrom(source, ...more);
      expect(document.error.message).toMatch(message);
      expect(exitCode).toBeGreaterThan(0);
      expect(stage.api.requests).toEqual([]);
    },
  };
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

/** Names of the files that imports left in the state directory. */
export function stateFilesIn(stateHome: string): readonly string[] {
  const folder = path.join(stateHome, 'maxsimd');
  return existsSync(folder) ? readdirSync(folder) : [];
}
