/** `maxsimd completion`: its words, and the words of all commands, which it completes. */
import { Argument, type Command } from 'commander';
import type { ProgramEnvironment } from './environment.ts';
import type { CompletedCommand } from '../completion.ts';
import { jsonOption } from './options.ts';

const shells = ['bash', 'zsh', 'fish'] as const;

export function addCompletion(program: Command, environment: ProgramEnvironment): void {
  program
    .command('completion')
    .description('print a script that completes commands and options in a shell')
    .addArgument(new Argument('<shell>').choices(shells))
    .addOption(jsonOption())
    .addHelpText(
      'after',
      '\nbash: source <(maxsimd completion bash)            in ~/.bashrc\n' +
        'zsh:  source <(maxsimd completion zsh)             in ~/.zshrc, after compinit\n' +
        'fish: maxsimd completion fish | source             in ~/.config/fish/config.fish',
    )
    .action(async (shell: (typeof shells)[number]) => {
      const { completionScript } = await import('../completion.ts');
      const script = completionScript(shell, commandsOf(program, ''));
      environment.report({ document: { script }, text: script });
    });
}

/** A command and its subcommands. `at` has the words that lead to the command. */
function commandsOf(command: Command, at: string): readonly CompletedCommand[] {
  const help = command.createHelp();
  const below = help.visibleCommands(command);
  const words = [
    ...command.registeredArguments.flatMap(({ argChoices = [] }) =>
      argChoices.map((word) => ({ word, text: '' })),
    ),
    ...below.map((child) => ({ word: child.name(), text: child.summary() || child.description() })),
    ...help
      .visibleOptions(command)
      .flatMap((option) => (option.long == null ? [] : [{ word: option.long, text: option.description }])),
  ];
  const children = below.filter((child) => child.name() !== 'help');
  return [
    {
      at,
      words,
      takesFiles: command.registeredArguments.some((argument) =>
        /source|directory|file/.test(argument.name()),
      ),
    },
    ...children.flatMap((child) => commandsOf(child, `${at} ${child.name()}`.trim())),
  ];
}
