/**
 * An object store that speaks S3, and the only importer of its client. Endpoint, region and credentials come from the
 * standard AWS variables. Every part carries a checksum that the store verifies. Every download is compared with the
 * SHA-256 of what was sent, so checksums that the store sends are not looked at: some servers answer a range with the checksum
 * of the whole object.
 */
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { Transform, type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { storeCodes, whyAway } from '../../away-reasons.ts';
import { unavailable } from '../../errors.ts';
import { hasCode, storageUnavailable, withCode } from '../../system-errors.ts';
import type { ObjectStore, PutObject } from './object-store.ts';
import { turns } from './turns.ts';

const attemptsMax = 4;
/** A put holds two parts in memory. */
const partBytes = 8 * 1024 * 1024;
const partsAtOnce = 2;
const pingMs = 3_000;
const pingBody = 'maxsimd';

export interface S3Options {
  readonly connectMsMax?: number;
  /** How long a connection may stay without a byte in either direction. A whole file may take any time. */
  readonly idleMsMax?: number;
  /** Files under way. More wait for their turn. */
  readonly filesAtOnce?: number;
}

/** `url`: `s3://bucket/prefix`. */
export function openS3ObjectStore(
  url: string,
  { filesAtOnce = 32, ...options }: S3Options = {},
): ObjectStore {
  const bucket = new S3Bucket(url, options);
  const inTurn = turns(filesAtOnce);
  let pinged = { atMs: -Infinity, answer: Promise.resolve() };
  return {
    putFile: (key, path) => inTurn(() => bucket.put(key, path)),

    getFile: (key, path, expected) =>
      inTurn(async () => {
        if ((await bucket.get(key, path, expected)) === '') return;
        const wrong = await bucket.get(key, path, expected);
        if (wrong !== '') throw withCode('corrupt', `object ${key} ${wrong}`);
      }),

    readPart: (key, first, bytes) => inTurn(() => bucket.part(key, first, bytes)),

    remove: (key) => bucket.remove(key),

    ping() {
      const nowMs = performance.now();
      if (nowMs - pinged.atMs >= pingMs) pinged = { atMs: nowMs, answer: bucket.ping() };
      return pinged.answer;
    },

    close: () => bucket.close(),
  };
}

/** One object that another program put. */
export interface S3Object {
  readonly bytes: number;
  /** Its entity tag, which differs once the content has changed. */
  readonly version: string;
  /** Resolves to exactly so many bytes. Rejects with status 412 or 416 if the object has changed since it was opened. */
  readonly read: (first: number, bytes: number) => Promise<Buffer>;
}

/** `url`: `s3://bucket/key`. Rejects with the errors of the AWS client. */
export async function openS3Object(url: string): Promise<S3Object> {
  const [, bucket, key] = /^s3:\/\/([^/]+)\/(.+)$/s.exec(url) ?? [];
  if (bucket === undefined) throw new Error('a URL s3://BUCKET/KEY names an object');
  const client = newClient({});
  const place = { Bucket: bucket, Key: key };
  const { ContentLength: bytes = 0, ETag: version = '' } = await client.send(new HeadObjectCommand(place));
  return {
    bytes,
    version,
    read: async (first, count) => {
      const part = await readRange(client, { ...place, IfMatch: version }, first, count);
      // Some servers ignore the condition of a request for a range.
      if (part.version !== version)
        throw Object.assign(new Error('another entity tag'), { $metadata: { httpStatusCode: 412 } });
      if (part.content.length !== count) throw otherBytes(count, part.content.length);
      return part.content;
    },
  };
}

/** The status of an answer that is a failure, and its code if it has one; `undefined` = there was no answer. */
export function failedAnswer(
  error: unknown,
): { readonly status: number; readonly words: string } | undefined {
  const { $metadata } = Object(error) as Partial<S3ServiceException>;
  const status = $metadata?.httpStatusCode;
  if (status === undefined) return undefined;
  // The client makes up a name for an answer without a code.
  const hasCodeToo =
    error instanceof S3ServiceException && !/^(\d+|Unknown(Error)?|NotFound)$/.test(error.name);
  return { status, words: hasCodeToo ? `${status} ${error.name}` : String(status) };
}

function newClient({ connectMsMax = 2_000, idleMsMax = 10_000 }: S3Options): S3Client {
  return new S3Client({
    // A bucket in the host's name needs DNS entries that few other stores than Amazon's have.
    forcePathStyle: true,
    maxAttempts: attemptsMax,
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      connectionTimeout: connectMsMax,
      socketTimeout: idleMsMax,
      // A request that waits for a socket would use up its time to connect, so sockets are not bounded here.
      httpAgent: { maxSockets: Infinity },
      httpsAgent: { maxSockets: Infinity },
    },
  });
}

interface Range {
  readonly content: Buffer;
  readonly version: string;
}

/** Resolves to `bytes` bytes, or to as many as there are from `first` on. */
async function readRange(
  client: S3Client,
  place: { readonly Bucket: string; readonly Key: string | undefined; readonly IfMatch?: string },
  first: number,
  bytes: number,
): Promise<Range> {
  const request = new GetObjectCommand({ ...place, Range: `bytes=${first}-${first + bytes - 1}` });
  const { Body: body, ContentLength: length = 0, ETag: version = '' } = await client.send(request);
  // A server that ignores ranges sends the whole object, which may not fit into memory.
  if (length > bytes) {
    (body as Readable).destroy();
    throw otherBytes(bytes, length);
  }
  const content = (await body?.transformToByteArray()) ?? new Uint8Array();
  return { content: Buffer.from(content.buffer, content.byteOffset, content.byteLength), version };
}

function otherBytes(wanted: number, given: number): Error {
  return withCode(storeCodes.wrong, `a request for ${wanted} bytes was answered with ${given}`);
}

/** The objects under the prefix of a URL. */
/** Not `Bucket`: TypeScript 7.0.2 renames the property `Bucket` of the requests with a class of that name. */
class S3Bucket {
  readonly #client: S3Client;
  readonly #bucket: string;
  readonly #prefix: string;

  constructor(url: string, options: S3Options) {
    const { host, pathname } = new URL(url);
    this.#bucket = host;
    this.#prefix = pathname.replace(/^\/+|\/+$/g, '');
    this.#client = newClient(options);
  }

  async remove(key: string): Promise<void> {
    await this.#client.send(new DeleteObjectCommand(this.#at(key))).catch((error: unknown) => {
      if (!isMissing(error)) throw fromStore(error);
    });
  }

  close(): void {
    this.#client.destroy();
  }

  #at(key: string) {
    return { Bucket: this.#bucket, Key: this.#prefix === '' ? key : `${this.#prefix}/${key}` };
  }

  async put(key: string, path: string): Promise<PutObject> {
    const sent = new Digest();
    const source = createReadStream(path, { highWaterMark: 1024 * 1024 });
    const upload = new Upload({
      client: this.#client,
      params: { ...this.#at(key), Body: source.pipe(sent) },
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

  /** Returns how the object differs from `expected`, and removes the file then. Empty = it does not differ. */
  async get(key: string, path: string, expected: PutObject): Promise<string> {
    const received = new Digest();
    try {
      const { Body: body } = await this.#client.send(new GetObjectCommand(this.#at(key)));
      await pipeline(body as Readable, received, createWriteStream(path, { flags: 'wx' }));
    } catch (error) {
      if (!hasCode(error, 'EEXIST')) await rm(path, { force: true });
      // The local folder has gone. The caller must not take that for a missing object.
      if (hasCode(error, 'ENOENT')) throw storageUnavailable(error);
      throw fromStore(error);
    }
    if (received.bytes === expected.bytes && received.hex() === expected.sha256) return '';
    await rm(path, { force: true });
    return received.bytes === expected.bytes
      ? 'has another SHA-256 than the object that was put'
      : `has ${received.bytes} bytes, ${expected.bytes} were put`;
  }

  async part(key: string, first: number, bytes: number): Promise<Buffer> {
    try {
      return (await readRange(this.#client, this.#at(key), first, bytes)).content;
    } catch (error) {
      // The object ends before `first`.
      if (failedAnswer(error)?.status === 416) return Buffer.alloc(0);
      throw fromStore(error);
    }
  }

  /** All nodes write the same object, so that they need not agree on names. */
  async ping(): Promise<void> {
    const object = this.#at('ping');
    try {
      await this.#client.send(new PutObjectCommand({ ...object, Body: pingBody }));
      const { Body: body } = await this.#client.send(new GetObjectCommand(object));
      if ((await body?.transformToString()) !== pingBody)
        throw withCode(storeCodes.wrong, 'an object came back with another body');
    } catch (error) {
      throw fromStore(error);
    }
  }
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
  if (hasCode(error, 'ENOSPC', 'EDQUOT')) return withCode('no_space', 'no space', error);
  if (error instanceof Error && 'syscall' in error && 'path' in error) return error;
  if (isMissing(error)) return withCode('ENOENT', 'there is no such object', error);
  return unavailable('the object store cannot be reached', withStatus(error));
}

/** The status alone says too little: a balancer without servers answers 404, too, and the client names that `NotFound`. */
function isMissing(error: unknown): boolean {
  return error instanceof Error && error.name === 'NoSuchKey';
}

/** Adds status and code of an answer, for the log, unless the error says by itself why the store cannot be used. */
function withStatus(error: unknown): unknown {
  const answer = failedAnswer(error);
  if (answer === undefined || whyAway(error) !== undefined) return error;
  const { status, words } = answer;
  const isOwnError = (status >= 500 && status !== 501) || status === 408 || status === 429;
  const code = status < 300 ? storeCodes.wrong : isOwnError ? storeCodes.fails : storeCodes.refuses;
  return withCode(code, words, error);
}
