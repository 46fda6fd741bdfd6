/** Opens `catalog.db`, and keeps the reserve of disk space, for `open-catalog.ts`. */
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { ServiceError } from '../../errors.ts';
import { createKeyPepper, fingerprintOf } from '../key-pepper.ts';
import type { SpaceReserve } from '../space-reserve.ts';
import { assertNoProblem, inspectCatalogFiles } from './catalog-files.ts';
import { isOutOfSpace, openReader, openWriter, toOperatingError, type Connection } from './connection.ts';
import { catalogMigrations, migrate } from './schema.ts';

/** Longer than any transaction of any process. */
export const busyTimeoutMs = 10_000;
/** How often the reserve is made again once it was released. */
const reserveIntervalMs = 5_000;
const fullDisk = 'the disk is full: documents can be deleted, not added';

/** Creates or migrates the catalog and opens it for reading. On a full disk it releases the reserve and tries again. */
export async function openCatalogDatabase(
  file: string,
  options: { readonly reserve: SpaceReserve; readonly mustExist: boolean },
): Promise<{ readonly connection: Connection; readonly keyPepper: Uint8Array }> {
  const directory = path.dirname(file);
  try {
    const files = await inspectCatalogFiles(directory);
    assertNoProblem(files, directory);
    if (files.isNew && options.mustExist) {
      throw new ServiceError('not_found', `there is no catalog in ${directory}`);
    }
    const keyPepper = files.keyPepper ?? (await createKeyPepper(directory));
    return { keyPepper, connection: await openForReading(file, files.isNew ? keyPepper : undefined) };
  } catch (error) {
    if (isOutOfSpace(error) && options.reserve.release()) return openCatalogDatabase(file, options);
    throw toOperatingError(error);
  }
}

/** `newPepper`: the catalog is created with it, unless another process creates the catalog first. */
async function openForReading(file: string, newPepper: Uint8Array | undefined): Promise<Connection> {
  const connection = await openWriter({
    path: file,
    durability: 'power_loss',
    busyTimeoutMs,
    mustExist: newPepper === undefined,
  });
  try {
    connection
      .transaction(() => {
        migrate(connection, catalogMigrations);
        if (newPepper === undefined) return;
        connection
          .prepare('INSERT INTO catalog (singleton, id, key_pepper) VALUES (1, ?, ?) ON CONFLICT DO NOTHING')
          .run(randomUUID(), fingerprintOf(newPepper));
      })
      .immediate();
    // The writing connection is still open here: a reader can create neither a database nor its WAL.
    return openReader(file);
  } finally {
    connection.close();
  }
}

/** Makes the reserve, and makes it again after a release when there is room. Returns the function that stops this. */
export async function keepReserve(
  reserve: SpaceReserve,
  onNotice: (notice: string) => void,
): Promise<() => void> {
  let held = true;
  const keep = async (): Promise<void> => {
    await reserve.keep();
    if (reserve.held !== held) onNotice(reserve.held ? 'there is space on the disk again' : fullDisk);
    held = reserve.held;
  };
  await keep();
  const timer = setInterval(() => void keep(), reserveIntervalMs).unref();
  return () => clearInterval(timer);
}

/** Throws `service_unavailable` while the reserve is released: nothing may be added then. */
export function assertRoom(reserve: SpaceReserve): void {
  if (reserve.held) return;
  throw new ServiceError('service_unavailable', fullDisk, { retryAfterSeconds: reserveIntervalMs / 1000 });
}
