/**
 * Completion scripts. They hold every command and option as they are now: completing starts no process, and a new
 * release prints a new script. A script finds the command that the words before the cursor name, and offers what may
 * follow it.
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

/** Case labels that recognise a command by the words so far and the next one. */
function paths(commands: readonly CompletedCommand[], separator: string): string {
  return commands
    .filter(({ at }) => at !== '')
    .map(({ at }) => quoted(at))
    .join(separator);
}

function bash(commands: readonly CompletedCommand[]): string {
  const cases = commands.map(({ at, words, takesFiles }) => {
    const list = words.map(({ word }) => word).join(' ');
    return `    ${quoted(at)}) words=${quoted(list)}${takesFiles ? ' files=1' : ''} ;;`;
  });
  return `_maxsimd() {
  local at='' words='' files='' word current="\${COMP_WORDS[COMP_CWORD]}"
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "\${at:+$at }$word" in
      ${paths(commands, '|')}) at="\${at:+$at }$word" ;;
    esac
  done
  case "$at" in
${cases.join('\n')}
  esac
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
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "\${at:+$at }$word" in
      ${paths(commands, '|')}) at="\${at:+$at }$word" ;;
    esac
  done
  case "$at" in
${cases.join('\n')}
  esac
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
