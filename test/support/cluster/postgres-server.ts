/** One PostgreSQL for the tests of a file, with a database for each that asks. */
import { randomUUID } from 'node:crypto';
import { chmod } from 'node:fs/promises';
import { Client } from 'pg';
import { installServers } from '../../../deploy/local/install.ts';
import { startPostgres, type RunningPostgres } from '../../../deploy/local/postgres.ts';
import { freePort } from '../../../deploy/local/server-process.ts';
import { newDirectory } from '../machine/temporary-directory.ts';

export interface PostgresUnderTest {
  readonly server: RunningPostgres;
  /** The URL of a new, empty database. */
  newDatabase(): Promise<string>;
}

export async function startTestPostgres(): Promise<PostgresUnderTest> {
  const { postgres } = await installServers();
  const directory = await newDirectory();
  // Its own user must get there.
  await chmod(directory, 0o755);
  const server = await startPostgres({
    programs: postgres,
    directory: `${directory}/postgres`,
    port: await freePort(),
  });
  return {
    server,
    async newDatabase() {
      const name = `test_${randomUUID().replaceAll('-', '')}`;
      const client = new Client({ connectionString: server.url });
      await client.connect();
      try {
        await client.query(`CREATE DATABASE ${name}`);
      } finally {
        await client.end();
      }
      return server.urlOf(name);
    },
  };
}
