/**
 * Reads the methods of the addon twice: as C++ defines them (`native/binding`), and as TypeScript declares them. Each is a name with
 * the number of its arguments; a property has none.
 */

export type Methods = ReadonlyMap<string, number>;

/** The methods of a C++ class, or with `exports` the functions of the addon, from the texts of `native/binding`. */
export function definedMethods(binding: string, owner: string): Methods {
  const pattern =
    owner === 'exports'
      ? /Napi::Function::New\(env, (\w+), "(\w+)"\)/g
      : new RegExp(`Instance(?:Method|Accessor)<&(${owner}::\\w+)>\\("(\\w+)"\\)`, 'g');
  return new Map(
    [...binding.matchAll(pattern)].map(([, method = '', name = '']) => [
      name,
      argumentsRead(binding, method),
    ]),
  );
}

/** One more than the last argument that a function reads, itself or by handing `info` on. */
function argumentsRead(binding: string, method: string): number {
  const body = new RegExp(`^Napi::Value ${method}\\([^{]*(.*?)^\\}`, 'ms').exec(binding)?.[1];
  if (body === undefined) throw new Error(`the body of ${method} is not in native/binding`);
  const own = [...body.matchAll(/\binfo\[(\d+)\]/g)].map(([, place]) => Number(place) + 1);
  const handedOn = [...body.matchAll(/\b(\w+)\([^;{]*?[(\s]info,/g)].map(([, helper = '']) =>
    argumentsRead(binding, helper),
  );
  return Math.max(0, ...own, ...handedOn);
}

/** The members of an interface that is declared in a text. */
export function declaredMethods(source: string, name: string): Methods {
  const body = new RegExp(`^(?:export )?interface ${name} \\{(.*?)^\\}`, 'ms').exec(source)?.[1];
  if (body === undefined) throw new Error(`no interface ${name}`);
  const code = body.replaceAll(/\/\*.*?\*\//gs, '');
  return new Map(
    [...code.matchAll(/^ {2}(?:readonly )?(\w+)(\(|: )/gm)].map((match) => {
      const [whole, member = '', opening] = match;
      return [member, opening === '(' ? parametersIn(code.slice(match.index + whole.length)) : 0];
    }),
  );
}

/** The number of parameters before the bracket that closes their list. */
function parametersIn(list: string): number {
  let depth = 0;
  let names = 0;
  for (const { 0: token } of list.matchAll(/[([{<]|[)\]}>]|\w+\??:/g)) {
    if (/[([{<]/.test(token)) depth += 1;
    else if (!/[)\]}>]/.test(token)) names += depth === 0 ? 1 : 0;
    else if (depth === 0) return names;
    else depth -= 1;
  }
  throw new Error('a list of parameters has no end');
}
