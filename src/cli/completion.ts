/**
 * Completion scripts. A script lists all commands and options of this release, so completion starts no process. It finds
 * the command before the cursor, and offers the words that may follow.
 */
export interface CompletedCommand {
  /** Words that lead to it, such as `tenant create`; empty = the program itself. */
  readonly at: string;
  /** Commands and options that may follow. */
  readonly words: readonly { readonly word: string; readonly text: string }[];
  readonly takesFiles: boolean;
}

export function completionScript(
  shell: 'bash' | 'zsh' | 'fish',
  commands: readonly CompletedCommand[],
): string {
  return { bash, zsh, fish }[shell](commands);
}

/** Finds the command `at` in `words` and runs its case. Bash and zsh read this part alike. */
function commandOf(words: string, commands: readonly CompletedCommand[], cases: readonly string[]): string {
  const paths = commands.filter(({ at }) => at !== '').map(({ at }) => quoted(at));
  return `  for word in ${words}; do
    case "\${at:+$at }$word" in
      ${paths.join('|')}) at="\${at:+$at }$word" ;;
    esac
  done
  case "$at" in
${cases.join('\n')}
  esac`;
}

function bash(commands: readonly CompletedCommand[]): string {
  const cases = commands.map(({ at, words, takesFiles }) => {
    const list = words.map(({ word }) => word).join(' ');
    return `    ${quoted(at)}) words=${quoted(list)}${takesFiles ? ' files=1' : ''} ;;`;
  });
  return `_maxsimd() {
  local at='' words='' files='' word current="\${COMP_WORDS[COMP_CWORD]}"
${commandOf('"${COMP_WORDS[@]:1:COMP_CWORD-1}"', commands, cases)}
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [[ -n $files && $current != -* ]]; then
    local IFS=$'\\n'
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}
complete -o filenames -F _maxsimd maxsimd`;
}

function zsh(commands: readonly CompletedCommand[]): string {
  const cases = commands.map(({ at, words, takesFiles }) => {
    const list = words.map(({ word, text }) => quoted(`${word.replaceAll(':', String.raw`\:`)}:${text}`));
    return `    ${quoted(at)}) ${takesFiles ? '_files; ' : ''}offers=(${list.join(' ')}) ;;`;
  });
  return `#compdef maxsimd
_maxsimd() {
  local at='' word
  local -a offers
${commandOf('"${(@)words[2,CURRENT-1]}"', commands, cases)}
  _describe maxsimd offers
}
compdef _maxsimd maxsimd`;
}

function fish(commands: readonly CompletedCommand[]): string {
  const offers = commands.flatMap(({ at, words, takesFiles }) => [
    ...words.map(({ word, text }) => {
      const offer = word.startsWith('--') ? `-l ${word.slice(2)}` : `-a ${word}`;
      return `complete -c maxsimd -n "__maxsimd_at ${quoted(at)}" ${offer} -d ${quoted(text)}`;
    }),
    ...(takesFiles ? [`complete -c maxsimd -n "__maxsimd_at ${quoted(at)}" -F`] : []),
  ]);
  return `function __maxsimd_at
  set -l at
  for word in (commandline -opc)[2..]
    switch "$at $word"
      case ${commands
        .filter(({ at }) => at !== '')
        .map(({ at }) => quoted(at.includes(' ') ? at : ` ${at}`))
        .join(' ')}
        set at (string trim "$at $word")
    end
  end
  test "$at" = $argv[1]
end
complete -c maxsimd -f
${offers.join('\n')}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
