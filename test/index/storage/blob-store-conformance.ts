/** The conformance suite of blob stores. The suite of an implementation calls it with a function that makes an empty store. */
import { appendFile, readFile, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { BlobStore } from '../../../src/index/storage/blob-store.ts';

export interface BlobStoreFixture {
  readonly store: BlobStore;
  /** Opens the same blobs as a process that starts later. */
  reopen(): Promise<BlobStore>;
  dispose(): Promise<void>;
}

export function describeBlobStore(name: string, make: () => Promise<BlobStoreFixture>): void {
  describe(`blob store: ${name}`, () => {
    let fixture: BlobStoreFixture;
    let store: BlobStore;
    beforeEach(async () => {
      fixture = await make();
      ({ store } = fixture);
    });
    afterEach(() => fixture.dispose());

    async function put(blob: string, text: string): Promise<void> {
      await writeFile(await store.create(blob), text);
      await store.seal(blob);
    }

    it('keeps what was written to a created blob after it is sealed', async () => {
      await put('index-1/1.seg', 'matrices');
      expect(await readFile(await store.open('index-1/1.seg'), 'utf8')).toBe('matrices');
    });

    it('keeps an active blob that was never sealed', async () => {
      await writeFile(await store.create('index-1/1.seg'), 'active');
      const later = await fixture.reopen();
      expect(await readFile(await later.open('index-1/1.seg'), 'utf8')).toBe('active');
    });

    it('lets an active blob grow', async () => {
      const file = await store.create('index-1/1.seg');
      await writeFile(file, 'a');
      await appendFile(file, 'b');
      await store.seal('index-1/1.seg');
      expect(await readFile(await store.open('index-1/1.seg'), 'utf8')).toBe('ab');
    });

    it('rejects opening or sealing a blob that does not exist', async () => {
      await expect(store.open('index-1/1.seg')).rejects.toThrow(/ENOENT|not found/);
      await expect(store.seal('index-1/1.seg')).rejects.toThrow(/ENOENT|not found/);
    });

    it('lists blobs under a prefix with their sizes, sidecars included, in order of name', async () => {
      await put('index-1/2.seg', '22');
      await put('index-1/1.seg', '1');
      await put('index-1/1.seg.codes', '333');
      await put('index-2/1.seg', '1');
      expect(await store.list('index-1/')).toEqual([
        { name: 'index-1/1.seg', bytes: 1 },
        { name: 'index-1/1.seg.codes', bytes: 3 },
        { name: 'index-1/2.seg', bytes: 2 },
      ]);
      expect((await store.list('index-1/1.seg')).map(({ name: blob }) => blob)).toEqual([
        'index-1/1.seg',
        'index-1/1.seg.codes',
      ]);
      expect(await store.list('')).toHaveLength(4);
      expect(await store.list('index-3/')).toEqual([]);
    });

    it('removes a blob, and does nothing when it is gone', async () => {
      await put('index-1/1.seg', 'x');
      await store.remove('index-1/1.seg');
      await store.remove('index-1/1.seg');
      await store.remove('never/was');
      expect(await store.list('')).toEqual([]);
      await expect(store.open('index-1/1.seg')).rejects.toThrow(/ENOENT|not found/);
    });

    it('keeps a blob readable for who has it open while it is removed', async () => {
      await put('index-1/1.seg', 'mapped');
      const reading = readFile(await store.open('index-1/1.seg'), 'utf8');
      await reading;
      await store.remove('index-1/1.seg');
      expect(await reading).toBe('mapped');
    });

    it('can create blobs while the last others of the index are removed', async () => {
      await put('index-1/1.seg', 'old');
      const [file] = await Promise.all([store.create('index-1/2.seg'), store.remove('index-1/1.seg')]);
      await writeFile(file, 'new');
      await store.seal('index-1/2.seg');
      expect(await store.list('')).toEqual([{ name: 'index-1/2.seg', bytes: 3 }]);
    });

    it.each([
      '../escape.seg',
      'index-1/../../x',
      '/etc/passwd',
      'index-1/',
      'noslash',
      'a/b/c',
      'index-1/.hidden',
    ])('refuses the name %s', async (blob) => {
      await expect(store.create(blob)).rejects.toThrow(/this is a bug/);
      await expect(store.open(blob)).rejects.toThrow(/this is a bug/);
      await expect(store.remove(blob)).rejects.toThrow(/this is a bug/);
    });

    it('tells how much space is free', async () => {
      expect(await store.freeBytes()).toBeGreaterThan(0);
    });
  });
}
