/** What Linux counts for a process; nothing (zeros) on other systems. */
import { readFileSync } from 'node:fs';

const clockTicksPerSecond = 100;

/** CPU seconds and bytes written to disk since its start. */
export function processCounters(id: number): { cpuSeconds: number; writtenBytes: number } {
  const fields = statFields(id);
  const ticks = Number(fields[11] ?? 0) + Number(fields[12] ?? 0);
  let writtenBytes = 0;
  try {
    writtenBytes = Number(/^write_bytes: (\d+)$/m.exec(readFileSync(`/proc/${id}/io`, 'utf8'))?.[1] ?? 0);
  } catch {
    // Another user's process does not tell.
  }
  return { cpuSeconds: ticks / clockTicksPerSecond, writtenBytes };
}

/** Fields of /proc/PID/stat behind the command name, which may itself hold spaces. */
export function statFields(id: number): readonly string[] {
  try {
    const text = readFileSync(`/proc/${id}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return [];
  }
}
