/** Fetches half of a segment into a cache, says so, and waits to be killed. */
import { openBlobCache } from '../../../src/index/storage/local-blob-cache.ts';
import { openS3ObjectStore } from '../../../src/index/storage/s3-object-store.ts';

process.on('disconnect', () => process.exit(0));

const fail = (error: unknown): never => {
  throw error;
};
const objects = openS3ObjectStore(process.env['TEST_BLOBS'] ?? '');
const directory = process.env['TEST_CACHE'] ?? '';
const cache = await openBlobCache({ directory, objects, bytesMax: 2 ** 30, onError: fail });
process.once('message', ({ blob, bytes, sha256 }: { blob: string; bytes: number; sha256: string }) => {
  const fetchHalf = async (): Promise<void> => {
    const { partial } = await cache.open({ name: blob, key: blob, bytes, sha256 });
    if (partial === undefined) throw new Error('it is there already');
    const half = Math.ceil(bytes / 2 / partial.partBytes);
    await partial.need(Array.from({ length: half }, (_part, place) => place));
    process.send?.('half');
  };
  fetchHalf().catch(fail);
});
