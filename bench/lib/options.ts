/** The kinds of options that benchmarks have. */
import { availableParallelism } from 'node:os';
import type { Device } from './model/device.ts';
import type { Setting } from './benchmark.ts';

export function integer(otherwise: number, help: string, least = 1): Setting<number> {
  return { takes: 'n', otherwise: String(otherwise), help, parse: (text) => integerOf(text, least) };
}

export function integers(otherwise: string, help: string): Setting<readonly number[]> {
  return list(otherwise, help, (text) => integerOf(text, 1));
}

export function positiveNumber(otherwise: number, help: string): Setting<number> {
  return { takes: 'n', otherwise: String(otherwise), help, parse: positiveOf };
}

export function positiveNumbers(otherwise: string, help: string): Setting<readonly number[]> {
  return list(otherwise, help, positiveOf);
}

/** The default is all known names, unless `otherwise` says less. */
export function names<Name extends string>(
  known: readonly Name[],
  help: string,
  otherwise: readonly Name[] = known,
): Setting<readonly Name[]> {
  // The default names them all already.
  const choices = otherwise === known ? '' : `: ${known.join(', ')}`;
  return list(otherwise.join(','), `${help}${choices}`, (given) => {
    const found = known.find((name) => name === given);
    if (found === undefined) throw new Error(`There is no ${given}; there are ${known.join(', ')}.`);
    return found;
  });
}

export function words(help: string): Setting<readonly string[]> {
  return list('', help, (text) => text);
}

export function optional(takes: string, help: string): Setting<string | undefined> {
  return { takes, help, parse: (given) => given };
}

export function directory(otherwise: string, help: string): Setting<string> {
  return { takes: 'directory', otherwise, help, parse: (given) => given };
}

/** A switch that is off. */
export function flag(help: string): Setting<boolean> {
  return { help, otherwise: 'off', parse: Boolean };
}

/** A switch, `--no-peers` for the key `peers`. */
export function without(help: string): Setting<boolean> {
  return { help, parse: Boolean };
}

export const beir = optional('directory', 'texts of this BEIR directory, not of the installed packages');

export function device(otherwise: string): Setting<Device> {
  const threads = availableParallelism();
  return {
    takes: 'name',
    otherwise,
    help: 'cpu or cuda:N',
    parse: (name) => {
      if (name === 'cpu') return { provider: 'cpu', index: 0, threads };
      const index = /^cuda:(\d+)$/.exec(name)?.[1];
      if (index === undefined) throw new Error('It is cpu or cuda:N.');
      return { provider: 'cuda', index: Number(index), threads };
    },
  };
}

/** Values with commas between; none when the text is empty. */
function list<Value>(
  otherwise: string,
  help: string,
  parse: (text: string) => Value,
): Setting<readonly Value[]> {
  const parseAll = (given: string): readonly Value[] => (given === '' ? [] : given.split(',').map(parse));
  return { takes: 'list', otherwise, help, parse: parseAll };
}

function integerOf(given: string, least: number): number {
  const value = Number(given);
  if (given.trim() === '' || !Number.isSafeInteger(value) || value < least) {
    throw new Error(`It takes integers from ${least}.`);
  }
  return value;
}

function positiveOf(given: string): number {
  const value = Number(given);
  if (!(value > 0)) throw new Error('It takes positive numbers.');
  return value;
}
