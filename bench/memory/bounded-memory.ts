/** A group of processes whose memory, page cache included, the kernel bounds. Needs root, or a group that is delegated. */
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { endWithThisProcess } from '../lib/endings.ts';

export interface BoundedMemory extends Disposable {
  /** A shell command that runs in the group what it is given. */
  readonly enter: string;
  /** The kernel takes back at once what is beyond. */
  bound(bytes: number): void;
  /** Memory of the processes themselves, and page cache that they brought in. */
  used(): { readonly anonymousBytes: number; readonly cacheBytes: number };
}

/** In a directory of control groups, of version 1 or 2. */
export function boundedMemory(parent: string): BoundedMemory {
  const group = path.join(parent, `maxsimd-bench-${process.pid}`);
  mkdirSync(group);
  const remove = (): void => {
    if (existsSync(group)) rmdirSync(group);
  };
  const forget = endWithThisProcess(remove);
  const isFirst = existsSync(path.join(group, 'memory.limit_in_bytes'));
  const limit = path.join(group, isFirst ? 'memory.limit_in_bytes' : 'memory.max');
  const names = isFirst ? (['rss', 'cache'] as const) : (['anon', 'file'] as const);
  return {
    enter: `echo $$ > '${path.join(group, 'cgroup.procs')}'`,
    bound: (bytes) => writeFileSync(limit, String(Math.round(bytes))),
    used() {
      const stat = readFileSync(path.join(group, 'memory.stat'), 'utf8');
      const of = (name: string): number => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(stat)?.[1]);
      return { anonymousBytes: of(names[0]), cacheBytes: of(names[1]) };
    },
    [Symbol.dispose]: () => {
      forget();
      remove();
    },
  };
}
