/** Finds the child processes of a server, in Linux by `/proc` and elsewhere by `ps`. */
import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

export interface ProcessRow {
  readonly pid: number;
  readonly parent: number;
  readonly command: string;
}

async function listProcesses(): Promise<readonly ProcessRow[]> {
  if (process.platform !== 'linux') {
    const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid=,command=']);
    return stdout.split('\n').flatMap((line) => {
      const match = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line);
      return match === null
        ? []
        : [{ pid: Number(match[1]), parent: Number(match[2]), command: match[3] ?? '' }];
    });
  }
  const names = await readdir('/proc');
  const rows = await Promise.all(names.filter((name) => /^\d+$/.test(name)).map(readProcess));
  return rows.filter((row) => row !== undefined);
}

/** Reads one process. `undefined` = it has ended meanwhile, or is a zombie. */
async function readProcess(name: string): Promise<ProcessRow | undefined> {
  try {
    const stat = await readFile(`/proc/${name}/stat`, 'utf8');
    // The command in parentheses may itself hold spaces and parentheses.
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (state === 'Z' || state === 'X') return undefined;
    const command = await readFile(`/proc/${name}/cmdline`, 'utf8');
    return { pid: Number(name), parent: Number(parent), command: command.replaceAll('\0', ' ').trim() };
  } catch {
    return undefined;
  }
}

export async function childrenOf(pid: number): Promise<readonly ProcessRow[]> {
  const rows = await listProcesses();
  return rows.filter((row) => row.parent === pid);
}

/** The encoder processes that a server runs. */
export async function encodersOf(serverPid: number): Promise<readonly ProcessRow[]> {
  const rows = await childrenOf(serverPid);
  return rows.filter((row) => row.command.includes('encoder'));
}

export async function isAlive(pid: number): Promise<boolean> {
  const rows = await listProcesses();
  return rows.some((row) => row.pid === pid);
}
