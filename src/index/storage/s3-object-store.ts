/**
 * An object store that speaks S3, and the only importer of its client. Endpoint, region and credentials come by the
 * standard AWS variables. Every part carries a checksum that the store verifies, and every download is compared with the
 * SHA-256 of what was sent.
 */
import { DeleteObjectCommand, GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { Transform, type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { ServiceError } from '../../errors.ts';
import { hasCode, storageUnavailable } from '../../system-errors.ts';
import type { ObjectStore } from './object-store.ts';
import { turns } from './turns.ts';

const attemptsMax = 4;
/** What a put keeps in memory is so much, twice. */
const partBytes = 8 * 1024 * 1024;
const partsAtOnce = 2;
const retrySeconds = 1;
const pingMs = 3_000;
const pingBody = 'maxsimd';

export interface S3Options {
  readonly connectMsMax?: number;
  /** Without a byte in either direction. A whole file may take any time. */
  readonly idleMsMax?: number;
  /** Files under way; more wait their turn. */
  readonly filesAtOnce?: number;
}

/** `url`: `s3://bucket/prefix`. */
export function openS3ObjectStore(
  url: string,
  { connectMsMax = 2_000, idleMsMax = 10_000, filesAtOnce = 32 }: S3Options = {},
): ObjectStore {
  const { host: bucket, pathname } = new URL(url);
  const prefix = pathname.replace(/^\/+|\/+$/g, '');
  const at = (key: string) => ({ Bucket: bucket, Key: prefix === '' ? key : `${prefix}/${key}` });
  const client = new S3Client({
    // Buckets as names of hosts need DNS, which other stores than Amazon's rarely have.
    forcePathStyle: true,
    maxAttempts: attemptsMax,
    requestHandler: {
      connectionTimeout: connectMsMax,
      socketTimeout: idleMsMax,
      // The time to connect would count while a request waits for a socket: none does.
      httpAgent: { maxSockets: Infinity },
      httpsAgent: { maxSockets: Infinity },
    },
  });
  const inTurn = turns(filesAtOnce);
  let pinged = { atMs: -Infinity, answer: Promise.resolve() };

  async function put(key: string, path: string): Promise<{ bytes: number; sha256: string }> {
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
  }

  /** What is wrong with it, and then nothing is left of it; or empty. */
  async function get(
    key: string,
    path: string,
    expected: { readonly bytes: number; readonly sha256: string },
  ): Promise<string> {
    const received = new Digest();
    try {
      const { Body: body } = await client.send(new GetObjectCommand(at(key)));
      await pipeline(body as Readable, received, createWriteStream(path, { flags: 'wx' }));
    } catch (error) {
      if (!hasCode(error, 'EEXIST')) await rm(path, { force: true });
      // A folder that has gone is no object that is missing.
      if (hasCode(error, 'ENOENT')) throw storageUnavailable(error);
      throw fromStore(error);
    }
    if (received.bytes === expected.bytes && received.hex() === expected.sha256) return '';
    await rm(path, { force: true });
    return received.bytes === expected.bytes
      ? 'has another SHA-256 than what was put'
      : `has ${received.bytes} bytes, ${expected.bytes} were put`;
  }

  async function part(key: string, first: number, bytes: number): Promise<Buffer> {
    try {
      const range = `bytes=${first}-${first + bytes - 1}`;
      const { Body: body } = await client.send(new GetObjectCommand({ ...at(key), Range: range }));
      const content = (await body?.transformToByteArray()) ?? new Uint8Array();
      return Buffer.from(content.buffer, content.byteOffset, content.byteLength);
    } catch (error) {
      // It ends before.
      if (error instanceof Error && error.name === 'InvalidRange') return Buffer.alloc(0);
      throw fromStore(error);
    }
  }

  /** Every node writes the same. */
  async function ping(): Promise<void> {
    const object = at('ping');
    try {
      await client.send(new PutObjectCommand({ ...object, Body: pingBody }));
      const { Body: body } = await client.send(new GetObjectCommand(object));
      if ((await body?.transformToString()) !== pingBody) throw new Error('another body than was put');
    } catch (error) {
      throw fromStore(error);
    }
  }

  return {
    putFile: (key, path) => inTurn(() => put(key, path)),

    getFile: (key, path, expected) =>
      inTurn(async () => {
        if ((await get(key, path, expected)) === '') return;
        const wrong = await get(key, path, expected);
        if (wrong !== '') throw Object.assign(new Error(`object ${key} ${wrong}`), { code: 'corrupt' });
      }),

    readPart: (key, first, bytes) => inTurn(() => part(key, first, bytes)),

    async remove(key) {
      await client.send(new DeleteObjectCommand(at(key))).catch((error: unknown) => {
        throw fromStore(error);
      });
    },

    ping() {
      const nowMs = performance.now();
      if (nowMs - pinged.atMs >= pingMs) pinged = { atMs: nowMs, answer: ping() };
      return pinged.answer;
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
