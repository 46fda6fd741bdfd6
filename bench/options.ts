/** Values of the benchmarks' command-line options; what they cannot be is an error that names the option. */

export function integer(text: string, option: string, least = 1): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isSafeInteger(value) || value < least) {
    throw new Error(`--${option} takes integers from ${least}, not "${text}"`);
  }
  return value;
}

/** Integers with commas between. */
export function integers(text: string, option: string): readonly number[] {
  return text.split(',').map((part) => integer(part, option));
}

export function positiveNumber(text: string, option: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new Error(`--${option} takes positive numbers, not "${text}"`);
  return value;
}

/** Names with commas between; none when the text is empty. */
export function names<Name extends string>(
  text: string,
  known: readonly Name[],
  option: string,
): readonly Name[] {
  return text
    .split(',')
    .filter((name) => name !== '')
    .map((name) => {
      const found = known.find((one) => one === name);
      if (found === undefined) throw new Error(`--${option}: no ${name}; there are ${known.join(', ')}`);
      return found;
    });
}

export function device(
  text: string,
  option: string,
): { readonly provider: 'cpu' | 'cuda'; readonly device: number } {
  if (text === 'cpu') return { provider: 'cpu', device: 0 };
  const index = /^cuda:(\d+)$/.exec(text)?.[1];
  if (index === undefined) throw new Error(`--${option} takes cpu or cuda:N, not "${text}"`);
  return { provider: 'cuda', device: Number(index) };
}
