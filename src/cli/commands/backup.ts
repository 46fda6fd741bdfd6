/** `maxsimd backup` and `maxsimd restore`: their words. */
import { constants } from 'node:os';
import { type Command, Option } from 'commander';
import { lowerPriority } from '../../priority.ts';
import type { ProgramEnvironment } from './environment.ts';
import { jsonOption } from './options.ts';

export function addBackup(program: Command, environment: ProgramEnvironment): void {
  program
    .command('backup')
    .description(
      'write the data directory, or what nodes share, into one archive; also beside running servers',
    )
    .argument('<file>', 'the archive; replaced once the new one is whole')
    .option('--with-key-pepper', 'put the secret that API keys are hashed with into the archive, too')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      '\nThe archive is a tar file that holds the data directory at one moment. It holds metadata, and with the option\n' +
        'the secret of the keys: protect it like the data directory. Models are not in it. Exit code 1 with a list when\n' +
        'the data directory is damaged; the archive is written all the same.',
    )
    .action(async (file: string, { withKeyPepper = false }: { readonly withKeyPepper?: boolean }) => {
      const { takeBackup } = await import('../backup/backup.ts');
      // Searches come first.
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
    .description('make the data directory of an archive, or fill a cluster with it; either must be empty')
    .argument('<file>', 'an archive of `maxsimd backup`')
    .addOption(
      new Option('--key-pepper <file>', 'the key pepper, for an archive without it').conflicts(
        'withoutKeyPepper',
      ),
    )
    .option('--without-key-pepper', 'the key pepper is lost: void all API keys')
    .option('--accept-damage', 'restore what was damaged before the backup, too')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      '\nChecks every byte of the archive, then every page and record, before it touches the data directory\n' +
        '(MAXSIMD_DATA_DIR), or what several nodes share. Needs the size of the archive in free space beside it.',
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
