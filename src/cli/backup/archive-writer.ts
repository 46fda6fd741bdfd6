/** Writes an archive (`archive-format.ts`), with one buffer whatever its size. */
import { createHash, type Hash } from 'node:crypto';
import { closeSync, fstatSync, openSync, read as readDescriptor } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { promisify } from 'node:util';
import {
  archiveFormat,
  archiveVersion,
  checksumsName,
  encodeHeader,
  endBytes,
  manifestName,
  paddingOf,
  type FileChecksum,
  type Manifest,
} from './archive-format.ts';
import { CommandFailure } from '../failure.ts';

const read = promisify(readDescriptor);
const bufferBytes = 1024 * 1024;
/** Synced as it goes: the last sync would otherwise hold the disk for as long as the copy took. */
const syncBytes = 64 * 1024 * 1024;

export class ArchiveWriter {
  readonly #file: FileHandle;
  readonly #onBytes: (bytes: number) => void;
  readonly #modified: Date;
  readonly #files: FileChecksum[] = [];
  readonly #buffer = Buffer.allocUnsafe(bufferBytes);
  #written = 0;
  #unsynced = 0;

  /** A new file, whose first entry is the manifest. `onBytes` is called with each part, and may throw to end the work. */
  static async create(
    file: string,
    manifest: Pick<Manifest, 'maxsimd' | 'key_pepper'>,
    onBytes: (bytes: number) => void,
  ): Promise<ArchiveWriter> {
    // Headers count whole seconds.
    const createdAt = new Date(Math.floor(Date.now() / 1000) * 1000);
    const writer = new ArchiveWriter(await open(file, 'wx', 0o600), createdAt, onBytes);
    await writer.addBytes(
      manifestName,
      jsonOf({
        format: archiveFormat,
        format_version: archiveVersion,
        maxsimd: manifest.maxsimd,
        created_at: createdAt.toISOString(),
        key_pepper: manifest.key_pepper,
      } satisfies Manifest),
    );
    return writer;
  }

  private constructor(file: FileHandle, modified: Date, onBytes: (bytes: number) => void) {
    this.#file = file;
    this.#modified = modified;
    this.#onBytes = onBytes;
  }

  get entries(): number {
    return this.#files.length;
  }

  async addBytes(name: string, content: Buffer): Promise<void> {
    await this.#begin(name, content.length);
    await this.#write(content);
    await this.#end(name, content.length, createHash('sha256').update(content));
  }

  /** The first `bytes` of an open file. */
  async addFile(name: string, descriptor: number, bytes: number): Promise<void> {
    await this.#begin(name, bytes);
    const hash = createHash('sha256');
    for (let at = 0; at < bytes;) {
      const { bytesRead } = await read(
        descriptor,
        this.#buffer,
        0,
        Math.min(bytes - at, this.#buffer.length),
        at,
      );
      if (bytesRead === 0)
        throw new CommandFailure('backup_failed', `${name} became shorter while it was read`);
      const part = this.#buffer.subarray(0, bytesRead);
      hash.update(part);
      await this.#write(part);
      at += bytesRead;
    }
    await this.#end(name, bytes, hash);
  }

  async addPath(name: string, file: string): Promise<void> {
    const descriptor = openSync(file, 'r');
    try {
      await this.addFile(name, descriptor, fstatSync(descriptor).size);
    } finally {
      closeSync(descriptor);
    }
  }

  /** Returns the bytes of the archive, which is durable then, but for its name. */
  async finish(): Promise<number> {
    const checksums = jsonOf({ files: this.#files });
    await this.#begin(checksumsName, checksums.length);
    await this.#write(checksums);
    await this.#write(Buffer.alloc(paddingOf(checksums.length) + endBytes));
    await this.#file.sync();
    return this.#written;
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  #begin(name: string, bytes: number): Promise<void> {
    return this.#write(encodeHeader({ name, bytes, modified: this.#modified }));
  }

  async #end(name: string, bytes: number, hash: Hash): Promise<void> {
    this.#files.push({ name, bytes, sha256: hash.digest('hex') });
    await this.#write(Buffer.alloc(paddingOf(bytes)));
  }

  async #write(part: Buffer): Promise<void> {
    for (let at = 0; at < part.length;) {
      at += (await this.#file.write(part, at, part.length - at)).bytesWritten;
    }
    this.#written += part.length;
    this.#unsynced += part.length;
    if (this.#unsynced >= syncBytes) {
      await this.#file.datasync();
      this.#unsynced = 0;
    }
    this.#onBytes(part.length);
  }
}

function jsonOf(value: object): Buffer {
  return Buffer.from(`${JSON.stringify(value)}\n`);
}
