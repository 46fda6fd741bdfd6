/**
 * An object store that speaks S3, and the only importer of its client. Endpoint, region and credentials come by the
 * standard AWS variables. Every part carries a checksum that the store verifies, and every download is compared with the
 * SHA-256 of what was sent.
 */
import { HeadBucketCommand, GetObjectCommand, DeleteObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { Transform, type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { ServiceError } from '../../errors.ts';
import { hasCode } from '../../system-errors.ts';
import type { ObjectStore } from './object-store.ts';

const attemptsMax = 4;
const connectMsMax = 2_000;
/** Without a byte. */
const idleMsMax = 10_000;
const socketsMax = 64;
/** What a put keeps in memory is so much, twice. */
const partBytes = 8 * 1024 * 1024;
const partsAtOnce = 2;
const retrySeconds = 1;

/** `url`: `s3://bucket/prefix`. */
export function openS3ObjectStore(url: string): ObjectStore {
  const { host: bucket, pathname } = new URL(url);
  const prefix = pathname.replace(/^\/+|\/+$/g, '');
  const at = (key: string) => ({ Bucket: bucket, Key: prefix === '' ? key : `${prefix}/${key}` });
  const client = new S3Client({
    // Buckets as names of hosts need DNS, which other stores than Amazon's rarely have.
    forcePathStyle: true,
    maxAttempts: attemptsMax,
    requestHandler: {
      connectionTimeout: connectMsMax,
      requestTimeout: idleMsMax,
      throwOnRequestTimeout: true,
      httpAgent: { maxSockets: socketsMax },
      httpsAgent: { maxSockets: socketsMax },
    },
  });
  return {
    async putFile(key, path) {
      const sent = new Digest();
      const source = createReadStream(path, { highWaterMark: 1024 * 1024 });
      const upload = new Upload({
        client,
        params: { ...at(key), Body: source.pipe(sent) },
        partSize: partBytes,
        queueSize: partsAtOnce,
      });
      const unread = new Promise<never>((_resolve, reject) => void source.once('error', reject));
      try {
        await Promise.race([upload.done(), unread]);
      } catch (error) {
        await upload.abort().catch(() => undefined);
        throw fromStore(error);
      } finally {
        source.destroy();
      }
      return { bytes: sent.bytes, sha256: sent.hex() };
    },

    async getFile(key, path, expected) {
      const get = async (): Promise<boolean> => {
        const received = new Digest();
        try {
          const { Body: body } = await client.send(new GetObjectCommand(at(key)));
          await pipeline(body as Readable, received, createWriteStream(path, { flags: 'wx' }));
        } catch (error) {
          if (!hasCode(error, 'EEXIST')) await rm(path, { force: true });
          throw fromStore(error);
        }
        if (received.bytes === expected.bytes && received.hex() === expected.sha256) return true;
        await rm(path, { force: true });
        return false;
      };
      if ((await get()) || (await get())) return;
      throw Object.assign(new Error(`object ${key} is not what was put`), { code: 'corrupt' });
    },

    async remove(key) {
      await client.send(new DeleteObjectCommand(at(key))).catch((error: unknown) => {
        throw fromStore(error);
      });
    },

    async ping() {
      await client.send(new HeadBucketCommand({ Bucket: bucket })).catch((error: unknown) => {
        throw fromStore(error);
      });
    },

    close: () => client.destroy(),
  };
}

/** Passes bytes on and keeps their number and SHA-256. */
class Digest extends Transform {
  readonly #hash = createHash('sha256');
  bytes = 0;

  override _transform(chunk: Buffer, _encoding: string, done: (error: null, chunk: Buffer) => void): void {
    this.#hash.update(chunk);
    this.bytes += chunk.length;
    done(null, chunk);
  }

  hex(): string {
    return this.#hash.digest('hex');
  }
}

/** Errors of the local file system stay as they are. */
function fromStore(error: unknown): unknown {
  if (hasCode(error, 'ENOSPC', 'EDQUOT'))
    return Object.assign(new Error('no space', { cause: error }), { code: 'no_space' });
  if (error instanceof Error && 'syscall' in error && 'path' in error) return error;
  if (error instanceof Error && (error.name === 'NoSuchKey' || error.name === 'NotFound')) {
    return Object.assign(new Error('there is no such object', { cause: error }), { code: 'ENOENT' });
  }
  return new ServiceError('service_unavailable', 'the object store cannot be reached', {
    retryAfterSeconds: retrySeconds,
    cause: error,
  });
}
