import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { openLocalBlobStore } from '../../../src/index/storage/local-blob-store.ts';
import { describeBlobStore } from './blob-store-conformance.ts';

async function makeLocal() {
  const directory = await mkdtemp(path.join(tmpdir(), 'maxsimd-blobs-'));
  const root = path.join(directory, 'segments');
  return {
    root,
    store: await openLocalBlobStore(root),
    reopen: () => openLocalBlobStore(root),
    dispose: () => rm(directory, { recursive: true, force: true }),
  };
}

describeBlobStore('local directory', makeLocal);

describe('local blob store', () => {
  it('closes its directories to everybody but the owner', async () => {
    const { root, store, dispose } = await makeLocal();
    await store.create('index-1/1.seg');
    expect((await stat(root)).mode & 0o777).toBe(0o700);
    expect((await stat(path.join(root, 'index-1'))).mode & 0o777).toBe(0o700);
    await dispose();
  });

  it('removes the directory of an index with its last blob', async () => {
    const { root, store, dispose } = await makeLocal();
    await store.create('index-1/1.seg');
    await store.remove('index-1/1.seg');
    await expect(stat(path.join(root, 'index-1'))).rejects.toThrow(/ENOENT/);
    await dispose();
  });
});
