/**
 * Reads an archive (`archive-format.ts`) from the first byte to the last, with one buffer, and refuses it unless every byte
 * is as a backup wrote it.
 */
import { createHash } from 'node:crypto';
import { open, type FileHandle } from 'node:fs/promises';
import { CommandFailure } from '../failure.ts';
import {
  anyManifestSchema,
  archiveVersion,
  blockBytes,
  checksumBytesMax,
  checksumsName,
  checksumsSchema,
  decodeHeader,
  endBytes,
  isArchived,
  manifestBytesMax,
  manifestName,
  manifestSchema,
  paddingOf,
  type Entry,
  type FileChecksum,
  type Manifest,
} from './archive-format.ts';

export interface ArchiveSink {
  begin(name: string): Promise<void>;
  write(part: Buffer): Promise<void>;
  /** The entry is complete. Its checksum is compared later. */
  end(): Promise<void>;
}

export interface ArchiveContents {
  readonly manifest: Manifest;
  readonly names: ReadonlySet<string>;
  readonly bytes: number;
}

export interface ReadOptions {
  /** Receives the files; `undefined` = the archive is only checked. */
  readonly sink?: ArchiveSink;
  /** May throw, so that the rest is not read for nothing. */
  readonly onManifest?: (manifest: Manifest) => void;
  /** Called after each part with its bytes. It may throw to end the work. */
  readonly onBytes: (bytes: number) => void;
}

const bufferBytes = 1024 * 1024;

/** Rejects with `archive_refused` and the reason. The sink's files are then worthless. */
export async function readArchive(path: string, options: ReadOptions): Promise<ArchiveContents> {
  const file = await open(path, 'r');
  try {
    return await new ArchiveReader(file, path, options).read();
  } finally {
    await file.close();
  }
}

class ArchiveReader {
  readonly #file: FileHandle;
  readonly #path: string;
  readonly #options: ReadOptions;
  readonly #buffer = Buffer.allocUnsafe(bufferBytes);
  readonly #files: FileChecksum[] = [];
  readonly #names = new Set<string>();
  #at = 0;

  constructor(file: FileHandle, path: string, options: ReadOptions) {
    this.#file = file;
    this.#path = path;
    this.#options = options;
  }

  async read(): Promise<ArchiveContents> {
    const manifest = await this.#readManifest();
    for (;;) {
      const entry = await this.#readHeader();
      if (entry.name === checksumsName) {
        await this.#readChecksums(entry);
        break;
      }
      this.#takeName(entry.name);
      await this.#readFile(entry);
    }
    await this.#readZeros(endBytes);
    if ((await this.#file.read(this.#buffer, 0, 1, this.#at)).bytesRead > 0)
      throw this.#damaged('goes on after its end');
    if (!this.#names.has('catalog.db')) throw this.#damaged('holds no catalog');
    if (this.#names.has('key-pepper') !== manifest.key_pepper)
      throw this.#damaged('holds a key pepper, or none, against its own word');
    return { manifest, names: this.#names, bytes: this.#at };
  }

  async #readManifest(): Promise<Manifest> {
    const foreign = this.#refused('is no backup of maxsimd');
    const block = Buffer.alloc(blockBytes);
    const { bytesRead } = await this.#file.read(block, 0, blockBytes, 0);
    const header = bytesRead === blockBytes ? decodeHeader(block) : undefined;
    if (header?.name !== manifestName) {
      // A backup with a damaged first header gets here, too.
      throw block.includes(manifestName) ? this.#damaged('has a damaged header at byte 0') : foreign;
    }
    await this.#readHeader();
    const content = await this.#readContent(header, manifestBytesMax);
    const any = anyManifestSchema.safeParse(jsonOf(content));
    if (!any.success) throw foreign;
    if (any.data.format_version > archiveVersion) {
      throw this.#refused(
        `has archive format ${any.data.format_version}, this program reads up to ${archiveVersion}: maxsimd ${any.data.maxsimd} wrote it`,
      );
    }
    const manifest = manifestSchema.safeParse(any.data);
    if (!manifest.success) throw this.#damaged('has a damaged manifest');
    this.#note(header, sha256(content));
    this.#options.onManifest?.(manifest.data);
    return manifest.data;
  }

  async #readFile({ name, bytes }: Entry): Promise<void> {
    const { sink } = this.#options;
    const hash = createHash('sha256');
    await sink?.begin(name);
    for (let left = bytes; left > 0;) {
      const part = await this.#readPart(Math.min(left, bufferBytes));
      hash.update(part);
      await sink?.write(part);
      left -= part.length;
    }
    await sink?.end();
    await this.#readZeros(paddingOf(bytes));
    this.#note({ name, bytes }, hash.digest('hex'));
  }

  async #readChecksums(entry: Entry): Promise<void> {
    const content = await this.#readContent(entry, (this.#files.length + 1) * checksumBytesMax);
    const checksums = checksumsSchema.safeParse(jsonOf(content));
    if (!checksums.success) throw this.#damaged('has damaged checksums');
    const { files } = checksums.data;
    for (const [place, found] of this.#files.entries()) {
      const wanted = files[place];
      if (wanted?.name !== found.name || wanted.bytes !== found.bytes)
        throw this.#damaged(`does not list ${found.name} as it holds it`);
      if (wanted.sha256 !== found.sha256) throw this.#damaged(`holds ${found.name} with another checksum`);
    }
    if (files.length !== this.#files.length) throw this.#damaged('lists files that it does not hold');
  }

  async #readHeader(): Promise<Entry> {
    const at = this.#at;
    const header = decodeHeader(await this.#readPart(blockBytes));
    if (header === undefined) throw this.#damaged(`has a damaged header at byte ${at}`);
    return header;
  }

  async #readContent({ name, bytes }: Entry, bytesMax: number): Promise<Buffer> {
    if (bytes > bytesMax) throw this.#damaged(`has a ${name} of ${bytes} bytes`);
    const parts: Buffer[] = [];
    for (let left = bytes; left > 0;) {
      const part = Buffer.from(await this.#readPart(Math.min(left, bufferBytes)));
      parts.push(part);
      left -= part.length;
    }
    await this.#readZeros(paddingOf(bytes));
    return Buffer.concat(parts);
  }

  async #readZeros(bytes: number): Promise<void> {
    const at = this.#at;
    if (bytes > 0 && (await this.#readPart(bytes)).some((byte) => byte !== 0))
      throw this.#damaged(`has bytes other than zero after byte ${at}`);
  }

  /** Exactly so many bytes, valid until the next call. */
  async #readPart(bytes: number): Promise<Buffer> {
    let filled = 0;
    while (filled < bytes) {
      const { bytesRead } = await this.#file.read(this.#buffer, filled, bytes - filled, this.#at + filled);
      if (bytesRead === 0) throw this.#damaged(`is cut off at byte ${this.#at + filled}`);
      filled += bytesRead;
    }
    this.#at += bytes;
    this.#options.onBytes(bytes);
    return this.#buffer.subarray(0, bytes);
  }

  #takeName(name: string): void {
    if (!isArchived(name)) throw this.#refused(`holds ${JSON.stringify(name)}, which belongs in no backup`);
    if (this.#names.has(name)) throw this.#damaged(`holds ${name} twice`);
    this.#names.add(name);
  }

  #note({ name, bytes }: Pick<Entry, 'name' | 'bytes'>, checksum: string): void {
    this.#files.push({ name, bytes, sha256: checksum });
  }

  #damaged(what: string): CommandFailure {
    return this.#refused(`is damaged: it ${what}`);
  }

  #refused(what: string): CommandFailure {
    return new CommandFailure('archive_refused', `${this.#path} ${what}`);
  }
}

function sha256(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}

/** `undefined` when it is none. */
function jsonOf(content: Buffer): unknown {
  try {
    return JSON.parse(content.toString('utf8'));
  } catch {
    return undefined;
  }
}
