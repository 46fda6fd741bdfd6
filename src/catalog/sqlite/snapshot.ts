/**
 * One moment of the databases of a data directory, read beside a running server. A read transaction holds the moment:
 * SQLite's online backup copies what that transaction sees, however much is committed meanwhile. The write-ahead
 * log cannot begin anew until it ends.
 */
import { existsSync } from 'node:fs';
import path from 'node:path';
import type { SegmentRow } from '../../index-state.ts';
import { catalogFile } from './catalog-files.ts';
import { openReader, toOperatingError, type Connection } from './connection.ts';
import { usageFile } from './usage/usage-store.ts';

/** Called after each step; throws what ends the copy. */
export type CopyProgress = (copied: { readonly pages: number; readonly pagesMax: number }) => void;

/** Between two steps the event loop goes on: 8 MiB. */
const stepPages = 2048;

export class CatalogSnapshot {
  readonly #connection: Connection;

  constructor(directory: string) {
    this.#connection = openReader(path.join(directory, catalogFile));
    this.renew();
  }

  /** A later moment takes the place of this one. */
  renew(): void {
    operating(() => {
      if (this.#connection.inTransaction) this.#connection.exec('COMMIT');
      // The first read of a transaction is its moment.
      this.#connection.exec('BEGIN; SELECT id FROM catalog');
    });
  }

  /** What each index consists of. */
  segments(): readonly SegmentRow[] {
    return operating(() =>
      this.#connection
        .prepare<[], SegmentRow>(
          `SELECT segments.id AS id, indexes.id AS indexId, segments.blob AS blob, segments.state AS state,
             (SELECT coalesce(max(record) + 1, 0) FROM versions INDEXED BY versions_placed
              WHERE versions.index_key = segments.index_key AND versions.segment_id = segments.id) AS recordsReferenced
           FROM segments JOIN indexes ON indexes.index_key = segments.index_key ORDER BY segments.id`,
        )
        .all(),
    );
  }

  /** What tells the pepper of its keys from others. */
  pepperFingerprint(): Uint8Array {
    return operating(() =>
      this.#connection.prepare<[], Uint8Array>('SELECT key_pepper FROM catalog').pluck().get(),
    )!;
  }

  /** Into a new file, which others may open once this resolves. */
  copyTo(file: string, onProgress: CopyProgress): Promise<void> {
    return copyDatabase(this.#connection, file, onProgress);
  }

  close(): void {
    this.#connection.close();
  }
}

/** Copies the usage ledger as it is now, if there is one. */
export async function copyUsage(directory: string, file: string, onProgress: CopyProgress): Promise<void> {
  const source = path.join(directory, usageFile);
  if (!existsSync(source)) return;
  const connection = openReader(source);
  try {
    await copyDatabase(connection, file, onProgress);
  } finally {
    connection.close();
  }
}

async function copyDatabase(connection: Connection, file: string, onProgress: CopyProgress): Promise<void> {
  let failure: unknown;
  try {
    await connection.backup(file, {
      progress({ totalPages, remainingPages }) {
        try {
          onProgress({ pages: totalPages - remainingPages, pagesMax: totalPages });
        } catch (error) {
          failure = error;
          throw error;
        }
        return stepPages;
      },
    });
  } catch (error) {
    throw failure ?? toOperatingError(error);
  }
}

function operating<Result>(read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    throw toOperatingError(error);
  }
}
