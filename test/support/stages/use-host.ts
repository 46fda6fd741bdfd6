/** The catalog, files and engine that the tests of a file share. */
import { afterAll, beforeAll } from 'vitest';
import { openHost, type Host } from './index-stage.ts';

export function useHost(): Pick<Host, 'blobs' | 'catalog' | 'engine'> {
  let host: Host | undefined;
  beforeAll(async () => {
    host = await openHost();
  });
  afterAll(() => host?.[Symbol.asyncDispose]());
  const present = (): Host => {
    if (host === undefined) throw new Error('the host is there before the first test, not earlier');
    return host;
  };
  return {
    get blobs() {
      return present().blobs;
    },
    get catalog() {
      return present().catalog;
    },
    get engine() {
      return present().engine;
    },
  };
}
