/** Reads the log of calls that changed a disk, which `disk-shim.cpp` writes (`LogEntry` in `disk-shim.h`). */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

const kinds = [
  'none',
  'create',
  'mkdir',
  'remove',
  'rename',
  'link',
  'write',
  'resize',
  'syncBegin',
  'syncEnd',
  'syncFailed',
  'refused',
  'note',
] as const;

export interface DiskLogEntry {
  readonly kind: (typeof kinds)[number];
  readonly inode: number;
  readonly number: number;
  /** The bytes that were written. */
  readonly data: Buffer;
}

const headerBytes = 24;

/** Reads a log as it grows. */
export class DiskLog {
  readonly #file: string;
  #read = 0;

  constructor(file: string) {
    this.#file = file;
  }

  /** The entries since the last call. */
  next(): readonly DiskLogEntry[] {
    const log = readFrom(this.#file, this.#read);
    const entries: DiskLogEntry[] = [];
    let at = 0;
    while (at + headerBytes <= log.length) {
      const end = at + headerBytes + log.readUInt32LE(at + 4);
      if (end > log.length) break;
      entries.push({
        kind: kinds[log.readUInt32LE(at)] ?? 'none',
        inode: Number(log.readBigUInt64LE(at + 8)),
        number: Number(log.readBigInt64LE(at + 16)),
        data: log.subarray(at + headerBytes, end),
      });
      at = end;
    }
    this.#read += at;
    return entries;
  }
}

function readFrom(file: string, offset: number): Buffer {
  const descriptor = openSync(file, 'r');
  try {
    const bytes = Buffer.alloc(fstatSync(descriptor).size - offset);
    readSync(descriptor, bytes, 0, bytes.length, offset);
    return bytes;
  } finally {
    closeSync(descriptor);
  }
}

/** The path or the two paths that an entry names, relative to the directory of the disk. */
export function pathsOf({ data }: DiskLogEntry): readonly string[] {
  return data.toString().split('\0');
}
