/** The catalog, files and engine that the tests of a file share. */
import { afterAll, beforeAll } from 'vitest';
import { openHost, type Host } from './index-stage.ts';

/** The host is there only while tests and their hooks run. */
export function useHost(): Pick<Host, 'blobs' | 'catalog' | 'engine'> {
  const host = {} as Host;
  beforeAll(async () => {
    Object.assign(host, await openHost());
  });
  afterAll(() => host[Symbol.asyncDispose]?.());
  return host;
}
