/** The state that a test shares with `disk-shim.cpp`: `DiskState` in `disk-shim.h`, as a file. */
import { closeSync, openSync, readSync, writeFileSync, writeSync } from 'node:fs';

/** The fields, in the order of the struct. */
const fields = [
  'freeBytes',
  'readOnly',
  'unreadFirst',
  'unreadEnd',
  'calls',
  'failFirst',
  'failEnd',
  'failErrno',
  'lostSyncs',
  'failedSyncs',
] as const;
const fieldBytes = 8;

export type DiskField = (typeof fields)[number];

/** The bits of the kinds of files in `lostSyncs` and `failedSyncs`. */
export const syncedFiles = {
  directories: 1,
  segments: 2,
  'the log of the catalog': 4,
  'the catalog': 8,
  'the log of the usage ledger': 16,
  'the usage ledger': 32,
  'files to be renamed': 64,
} as const;

export class DiskState {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
  }

  static create(file: string): DiskState {
    writeFileSync(file, Buffer.alloc(fields.length * fieldBytes));
    return new DiskState(file);
  }

  get(field: DiskField): number {
    const file = openSync(this.#file, 'r');
    const bytes = Buffer.alloc(fieldBytes);
    readSync(file, bytes, 0, fieldBytes, fields.indexOf(field) * fieldBytes);
    closeSync(file);
    return Number(bytes.readBigInt64LE());
  }

  set(field: DiskField, value: number): void {
    const file = openSync(this.#file, 'r+');
    const bytes = Buffer.alloc(fieldBytes);
    bytes.writeBigInt64LE(BigInt(value));
    writeSync(file, bytes, 0, fieldBytes, fields.indexOf(field) * fieldBytes);
    closeSync(file);
  }
}
