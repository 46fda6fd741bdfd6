/** Makes a PostgreSQL lose its last commits: it goes back to a copy of itself, while nodes use it. */
import { execFile } from 'node:child_process';
import { rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { installServers } from '../../../deploy/local/install.ts';
import type { RunningPostgres } from '../../../deploy/local/postgres.ts';
import { queryDatabase } from './servers.ts';

const run = promisify(execFile);

/**
 * `promoted replica`: a replica that was behind is promoted. It begins another timeline. `older copy`: the files of an
 * earlier moment are put back. The timeline stays.
 */
export type FallBack = 'promoted replica' | 'older copy';

/** Copies the server. The copy has all commits before the call, and perhaps some of those that come meanwhile. */
export async function copyOf(postgres: RunningPostgres): Promise<string> {
  const { postgres: programs } = await installServers();
  const copy = `${postgres.data}.copy`;
  await rm(copy, { recursive: true, force: true });
  const options = ['--wal-method=stream', '--checkpoint=fast', '--no-sync', `--dbname=${postgres.url}`];
  await run(path.join(programs, 'pg_basebackup'), [`--pgdata=${copy}`, ...options]);
  await run('chown', ['-R', `--reference=${postgres.data}`, copy]);
  return copy;
}

/** Puts the copy in place of the server, so later commits are lost. Resolves when the server takes writes again. */
export async function fallBack(postgres: RunningPostgres, copy: string, way: FallBack): Promise<void> {
  await postgres.stop('SIGQUIT');
  await rm(postgres.data, { recursive: true });
  if (way === 'promoted replica') await writeFile(path.join(copy, 'standby.signal'), '');
  await rename(copy, postgres.data);
  await postgres.start();
  if (way === 'promoted replica') await queryDatabase(postgres.url, 'SELECT pg_promote(true, 60)');
}
