/** A file that an import reads, whole or in parts: on this machine, or an object of S3 (`s3://bucket/key`). */
import { createReadStream, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { inputError, messageOf } from '../../failure.ts';

export interface InputFile {
  /** The path, or the URL of the object. */
  readonly name: string;
  readonly bytes: number;
  /** Differs once the content has changed. */
  readonly version: string;
  readonly stream: () => Readable;
  /** The bytes from `start` to before `end`. */
  readonly slice: (start: number, end: number) => Promise<Buffer>;
}

const partBytes = 8 * 1024 * 1024;

export function isS3(name: string): boolean {
  return name.startsWith('s3://');
}

/** A `CommandFailure` says why the file cannot be read. */
export function openInput(name: string): Promise<InputFile> {
  return isS3(name) ? openObject(name) : openLocal(name);
}

export function streamOf(input: InputFile | Readable): Readable {
  return input instanceof Readable ? input : input.stream();
}

/** The size and version of a file. A stream has neither. */
export function sizeOf(input: InputFile | Readable): Pick<InputFile, 'bytes'> & Partial<InputFile> {
  return input instanceof Readable ? { bytes: 0 } : { bytes: input.bytes, version: input.version };
}

async function openLocal(name: string): Promise<InputFile> {
  const stats = statSync(name, { throwIfNoEntry: false });
  if (stats === undefined) throw inputError(`${name} does not exist`);
  if (!stats.isFile()) throw inputError(`${name} is not a file`);
  return {
    name,
    bytes: stats.size,
    version: `${stats.size} ${stats.mtimeMs}`,
    stream: () => createReadStream(name),
    slice: async (start, end) => {
      try {
        await using handle = await open(name);
        const { buffer, bytesRead } = await handle.read(Buffer.alloc(end - start), 0, end - start, start);
        return buffer.subarray(0, bytesRead);
      } catch (error) {
        throw inputError(`cannot read ${name}: ${messageOf(error)}`, error);
      }
    },
  };
}

/** Reads parts, because a connection that waits for the service would be closed. */
async function openObject(name: string): Promise<InputFile> {
  const { failedAnswer, openS3Object } = await import('../../../index/storage/s3-object-store.ts');
  const refuse = (error: unknown): never => {
    const answer = failedAnswer(error);
    const reason = answer && (reasons[answer.status] ?? `the object store answers ${answer.words}`);
    throw inputError(`cannot read ${name}: ${reason ?? messageOf(error)}`, error);
  };
  const { bytes, version, read } = await openS3Object(name).catch(refuse);
  const slice: InputFile['slice'] = async (start, end) =>
    start < end ? read(start, end - start).catch(refuse) : Buffer.alloc(0);
  const parts = async function* (): AsyncGenerator<Buffer> {
    for (let start = 0; start < bytes; start += partBytes)
      yield await slice(start, Math.min(bytes, start + partBytes));
  };
  return { name, bytes, version, slice, stream: () => Readable.from(parts()) };
}

const changed = 'it has changed while it was read';
/** By the status of the answer. */
const reasons: Readonly<Record<number, string>> = {
  301: 'its bucket is in another region, which AWS_REGION can name',
  403: 'the credentials of AWS may not read it',
  404: 'there is no such object',
  412: changed,
  416: changed,
};
