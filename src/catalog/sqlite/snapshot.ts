/**
 * Copies the databases of a data directory at one moment, also beside a running server. A read transaction holds the moment.
 * SQLite's online backup copies what that transaction sees, whatever is committed meanwhile. Until it ends, no new write-ahead
 * log can begin.
 */
import { existsSync } from 'node:fs';
import path from 'node:path';
import type { SegmentRow } from '../../contracts/index-state.ts';
import { catalogFile } from './catalog-files.ts';
import { openReader, toOperatingError, type Connection } from './connection.ts';
import { usageFile } from './usage/usage-store.ts';

/** Called after each step. An error that it throws ends the copy. */
export type CopyProgress = (copied: { readonly pages: number; readonly pagesMax: number }) => void;

/** Pages of a step: 8 MiB. Between two steps the event loop goes on. */
const stepPages = 2048;

export class CatalogSnapshot {
  readonly #connection: Connection;

  constructor(directory: string) {
    this.#connection = openReader(path.join(directory, catalogFile));
    this.renew();
  }

  /** Replaces the moment by a later one. */
  renew(): void {
    operating(() => {
      if (this.#connection.inTransaction) this.#connection.exec('COMMIT');
      // The first read of a transaction sets its moment.
      this.#connection.exec('BEGIN; SELECT id FROM catalog');
    });
  }

  /** The segments of all indexes. */
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

  /** The fingerprint of the pepper that the keys were hashed with. */
  pepperFingerprint(): Uint8Array {
    return operating(() =>
      this.#connection.prepare<[], Uint8Array>('SELECT key_pepper FROM catalog').pluck().get(),
    )!;
  }

  /** Copies the catalog into a new file. It is complete when the promise resolves. */
  copyTo(file: string, onProgress: CopyProgress): Promise<void> {
    return copyDatabase(this.#connection, file, onProgress);
  }

  close(): void {
    this.#connection.close();
  }
}

/** Copies the usage ledger, if there is one, as it is now. */
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
