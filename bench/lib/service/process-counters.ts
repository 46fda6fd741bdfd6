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

export interface Thread {
  readonly id: number;
  readonly name: string;
  /** CPU seconds since its start. */
  readonly seconds: number;
}

/** The threads of a process in the order in which they started. The first is its main thread. */
export function threadsOf(id: number): readonly Thread[] {
  return entriesOf(`/proc/${id}/task`)
    .toSorted((a, b) => Number(a) - Number(b))
    .map((thread) => ({
      id: Number(thread),
      name: textOf(`/proc/${id}/task/${thread}/comm`).trim(),
      seconds: cpuSeconds(statFields(`${id}/task/${thread}`)),
    }));
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
