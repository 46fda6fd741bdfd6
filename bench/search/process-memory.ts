/** What Linux counts as this process's own memory, mapped files left out. */
import { readFileSync } from 'node:fs';

/** Bytes outside the JavaScript heap; zero on systems that do not tell. */
export function anonymousBytes(): number {
  try {
    const kibibytes = Number(
      /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? 0,
    );
    const { heapTotal, external } = process.memoryUsage();
    return kibibytes * 1024 - heapTotal - external;
  } catch {
    return 0;
  }
}
