/** `maxsimd backup` and `maxsimd restore` in this process. */
import { parseConfig } from '../../../src/app/config.ts';
import { takeBackup, type BackupOptions } from '../../../src/cli/backup/backup.ts';
import { restore, type RestoreOptions } from '../../../src/cli/backup/restore.ts';
import type { CommandResult } from '../../../src/cli/output.ts';

const quiet = { write: () => true, isTTY: false } as unknown as NodeJS.WriteStream;

export function backUp(
  directory: string,
  file: string,
  options: Partial<BackupOptions> = {},
): Promise<CommandResult> {
  return takeBackup({
    config: parseConfig({ MAXSIMD_DATA_DIR: directory }),
    file,
    withKeyPepper: true,
    version: 'test',
    signal: new AbortController().signal,
    stderr: quiet,
    ...options,
  });
}

export function restoreTo(
  directory: string,
  file: string,
  options: Partial<RestoreOptions> = {},
): Promise<CommandResult> {
  return restore({
    config: parseConfig({ MAXSIMD_DATA_DIR: directory }),
    file,
    withoutKeyPepper: false,
    acceptDamage: false,
    signal: new AbortController().signal,
    stderr: quiet,
    ...options,
  });
}
