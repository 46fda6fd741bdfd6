/** `maxsimd backup` and `maxsimd restore`: their words. */
import { constants } from 'node:os';
import { type Command, Option } from 'commander';
import { lowerPriority } from '../../process/process-tuning.ts';
import type { ProgramEnvironment } from './environment.ts';
import { jsonOption } from './options.ts';

export function addBackup(program: Command, environment: ProgramEnvironment): void {
  program
    .command('backup')
    .description('write the data directory or the cluster into an archive; servers may be running')
    .argument('<file>', 'the archive; an old one is replaced at the end')
    .option('--with-key-pepper', 'put the key pepper, with which API keys are hashed, into the archive')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      '\nThe archive is a tar file with the state of one moment. It has metadata, and with the option the key pepper, so\n' +
        'protect it like the data directory. It has no models. If the data directory is damaged, the damage is listed, the\n' +
        'exit code is 1, and the archive is written all the same.',
    )
    .action(async (file: string, { withKeyPepper = false }: { readonly withKeyPepper?: boolean }) => {
      const { takeBackup } = await import('../backup/backup.ts');
      // Searches of a server go first.
      lowerPriority(constants.priority.PRIORITY_BELOW_NORMAL);
      const { version, stderr } = environment;
      const signal = environment.interruption();
      environment.report(
        await takeBackup({ config: environment.config(), file, withKeyPepper, version, signal, stderr }),
      );
    });
}

interface RestoreWords {
  readonly keyPepper?: string;
  readonly withoutKeyPepper?: boolean;
  readonly acceptDamage?: boolean;
}

export function addRestore(program: Command, environment: ProgramEnvironment): void {
  program
    .command('restore')
    .description('restore an archive into an empty data directory or an empty cluster')
    .argument('<file>', 'an archive of `maxsimd backup`')
    .addOption(
      new Option('--key-pepper <file>', 'file of the key pepper, if the archive has none').conflicts(
        'withoutKeyPepper',
      ),
    )
    .option('--without-key-pepper', 'the key pepper is lost: revoke all API keys')
    .option('--accept-damage', 'also restore indexes that were damaged before the backup')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      '\nChecks every byte of the archive, then every page and record, before it changes the data directory\n' +
        '(MAXSIMD_DATA_DIR) or the cluster. Needs free space of the size of the archive beside the data directory.',
    )
    .action(async (file: string, words: RestoreWords) => {
      const { restore } = await import('../backup/restore.ts');
      const { keyPepper, withoutKeyPepper = false, acceptDamage = false } = words;
      environment.report(
        await restore({
          config: environment.config(),
          file,
          ...(keyPepper !== undefined && { keyPepper }),
          withoutKeyPepper,
          acceptDamage,
          signal: environment.interruption(),
          stderr: environment.stderr,
        }),
      );
    });
}
