/** Counters of Linux for a process and its threads. They are zero on other systems. */
import { readdirSync, readFileSync } from 'node:fs';

const clockTicksPerSecond = 100;

/** CPU seconds of a process since its start. */
export function processSeconds(id: number): number {
  return cpuSeconds(statFields(`${id}`));
}

/** Bytes of memory of a process: its own without mapped files, or the most that ever was resident. */
export function memoryBytes(id: number | 'self', kind: 'RssAnon' | 'VmHWM'): number {
  return (
    Number(new RegExp(`^${kind}:\\s+(\\d+) kB$`, 'm').exec(textOf(`/proc/${id}/status`))?.[1] ?? 0) * 1024
  );
}

/** The running children of a process. */
export function childProcesses(id: number): readonly number[] {
  return entriesOf('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(statFields(name)[1]) === id)
    .map(Number);
}

/** CPU seconds of the main thread, and of the other threads by name. */
export function threadCounters(id: number): {
  readonly mainSeconds: number;
  readonly secondsByName: ReadonlyMap<string, number>;
} {
  const secondsByName = new Map<string, number>();
  let mainSeconds = 0;
  for (const thread of entriesOf(`/proc/${id}/task`)) {
    const seconds = cpuSeconds(statFields(`${id}/task/${thread}`));
    if (thread === String(id)) {
      mainSeconds = seconds;
      continue;
    }
    const name = textOf(`/proc/${id}/task/${thread}/comm`).trim();
    secondsByName.set(name, (secondsByName.get(name) ?? 0) + seconds);
  }
  return { mainSeconds, secondsByName };
}

/** CPU seconds that the whole machine was busy since its start, with what its host took away (`steal`). */
export function machineSeconds(): number {
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = (
    /^cpu +(.*)$/m.exec(textOf('/proc/stat'))?.[1] ?? ''
  )
    .split(' ')
    .map(Number);
  return (user + nice + system + irq + softirq + steal) / clockTicksPerSecond;
}

/** Fields of /proc/ENTRY/stat behind the command name, which may itself hold spaces. */
function statFields(entry: string): readonly string[] {
  const text = textOf(`/proc/${entry}/stat`);
  return text === '' ? [] : text.slice(text.lastIndexOf(')') + 2).split(' ');
}

function cpuSeconds(fields: readonly string[]): number {
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) / clockTicksPerSecond;
}

function entriesOf(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

/** Empty when it has gone meanwhile. */
function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
