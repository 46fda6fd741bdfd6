/** Files that a variable of the configuration names. */
import { readFile } from 'node:fs/promises';
import { ConfigError } from './config.ts';

/** Throws a `ConfigError` that names variable and file. */
export async function readConfigured(variable: string, file: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (error) {
    throw new ConfigError(`${variable}: cannot read ${file}`, { cause: error });
  }
}
