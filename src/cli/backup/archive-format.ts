/**
 * The archive of a backup: a tar file, so that any system can look into it. Its entries, in this order:
 *
 *   maxsimd-backup.json      what it is (`manifestSchema`); read first, so that a newer format is refused by its number
 *   catalog.db               the catalog at one moment
 *   usage.db                 the usage of searches and scores; absent when there was none yet
 *   key-pepper               only where it was asked for
 *   segments/<index>/<file>  what the catalog names: sealed segments whole, active ones up to the last record that it
 *                            names; then what is derived from them
 *   checksums.json           name, bytes and SHA-256 of each entry before it (`checksumsSchema`)
 *
 * An entry is a header of 512 bytes, its bytes, and zeros up to the next multiple of 512. Two blocks of zeros end
 * the file. A header holds name, size, the mode 0600 and the time of the backup, and nothing else: a reader makes it anew
 * and compares, so that each byte of an archive is known to be right. An archive is not signed: checksums find
 * damage, not forgery.
 */
import { Header } from 'tar';
import { z } from 'zod';

export const archiveFormat = 'maxsimd backup';
/**
 * Archives of every version from 1 to this one are read. Version 2 has read-only keys, usage by day and the audit log in its
 * databases.
 */
export const archiveVersion = 2;

export const manifestName = 'maxsimd-backup.json';
export const checksumsName = 'checksums.json';
export const blockBytes = 512;
/** Two of these end the file. */
export const endBytes = 2 * blockBytes;
export const manifestBytesMax = 65_536;
/** Bytes of `checksums.json` for each entry: the longest name, a size, a checksum. */
export const checksumBytesMax = 512;

const fileNames = new Set(['catalog.db', 'usage.db', 'key-pepper']);
/** Two plain components below `segments`, as the blob store has them: no name leads elsewhere. */
const segmentPattern = /^segments\/[A-Za-z0-9][A-Za-z0-9_-]*\/[A-Za-z0-9][A-Za-z0-9._-]*$/;

export const manifestSchema = z.strictObject({
  format: z.literal(archiveFormat),
  format_version: z.int().min(1).max(archiveVersion),
  /** The version that wrote it. */
  maxsimd: z.string(),
  created_at: z.iso.datetime(),
  key_pepper: z.boolean(),
});
export type Manifest = z.output<typeof manifestSchema>;

/** As much of any version's manifest as says which version it is. */
export const anyManifestSchema = z.looseObject({
  format: z.literal(archiveFormat),
  format_version: z.number(),
  maxsimd: z.string(),
});

export const checksumsSchema = z.strictObject({
  files: z.array(z.strictObject({ name: z.string(), bytes: z.int().min(0), sha256: z.string() })),
});
export type FileChecksum = z.output<typeof checksumsSchema>['files'][number];

export interface Entry {
  readonly name: string;
  readonly bytes: number;
  readonly modified: Date;
}

export function encodeHeader({ name, bytes, modified }: Entry): Buffer {
  const block = Buffer.alloc(blockBytes);
  new Header({ path: name, size: bytes, mode: 0o600, mtime: modified, type: 'File' }).encode(block);
  return block;
}

/** `undefined` when the block is no header that `encodeHeader` makes. */
export function decodeHeader(block: Buffer): Entry | undefined {
  try {
    const { path: name = '', size: bytes = 0, mtime: modified = new Date(0) } = new Header(block);
    const entry = { name, bytes, modified };
    return encodeHeader(entry).equals(block) ? entry : undefined;
  } catch {
    // Its numbers are none that can be read, or written.
    return undefined;
  }
}

/** Zeros after the bytes of an entry. */
export function paddingOf(bytes: number): number {
  return (blockBytes - (bytes % blockBytes)) % blockBytes;
}

export function isArchived(name: string): boolean {
  return fileNames.has(name) || segmentPattern.test(name);
}
