/**
 * Makes every API key void, because the key pepper was lost or somebody else may know it. Refused while a server uses the
 * directory. If it is interrupted, the catalog and the pepper no longer belong together, and it must be run again.
 */
import path from 'node:path';
import { ServiceError } from '../../errors.ts';
import { unnamedActor } from '../contract.ts';
import { lockDataDirectory } from '../data-directory.ts';
import { fingerprintOf, keyPepperFile, replaceKeyPepper } from '../key-pepper.ts';
import { assertNoProblem, catalogFile, inspectCatalogFiles } from './catalog-files.ts';
import { openWriter, toOperatingError } from './connection.ts';
import { auditLog } from './operations/audit-log.ts';
import { catalogMigrations, migrate } from './schema.ts';

const busyTimeoutMs = 10_000;

/** Returns how many keys were not revoked before. */
export async function resetKeys(directory: string, actor: string = unnamedActor): Promise<number> {
  const found = await inspectCatalogFiles(directory);
  const problems = found.problems.filter(({ file }) => file !== keyPepperFile);
  assertNoProblem({ ...found, problems }, directory);
  if (found.isNew) throw new ServiceError('not_found', `there is no catalog in ${directory}`);
  const lock = lockDataDirectory(directory);
  try {
    let revoked = 0;
    await replaceKeyPepper(directory, async (pepper) => {
      revoked = await adopt(path.join(directory, catalogFile), pepper, actor);
    });
    return revoked;
  } finally {
    lock.release();
  }
}

async function adopt(file: string, pepper: Uint8Array, actor: string): Promise<number> {
  try {
    const connection = await openWriter({
      path: file,
      durability: 'power_loss',
      busyTimeoutMs,
      mustExist: true,
    });
    try {
      return connection
        .transaction(() => {
          migrate(connection, catalogMigrations);
          connection.prepare('UPDATE catalog SET key_pepper = ?').run(fingerprintOf(pepper));
          const { changes } = connection
            .prepare('UPDATE api_keys SET revoked_at_ms = ? WHERE revoked_at_ms IS NULL')
            .run(Date.now());
          auditLog(connection)(actor, 'keys_reset', undefined, { keys: changes });
          return changes;
        })
        .immediate();
    } finally {
      connection.close();
    }
  } catch (error) {
    throw toOperatingError(error);
  }
}
