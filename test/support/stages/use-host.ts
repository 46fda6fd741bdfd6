/** The catalog, files and engine that the tests of a file share. */
import { afterAll, beforeAll } from 'vitest';
import { openHost, type Host } from './index-stage.ts';

/** Opens the host before the tests of the file and closes it after them. */
export function useHost(): Pick<Host, 'blobs' | 'catalog' | 'engine'> {
  const host = {} as Host;
  beforeAll(async () => {
    Object.assign(host, await openHost());
  });
  afterAll(() => host[Symbol.asyncDispose]?.());
  return host;
}
