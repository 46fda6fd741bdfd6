/** Tenants that share the memory of the engine. */
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { expect, it } from 'vitest';

it.each([
  ['that the columns of one tenant take is given to every other, and to that one again', 'columns'],
  ['for a tenant that opens many indexes comes from its own idle ones', 'manyIndexes'],
  ['of a large index is given to another tenant, and back once that one is idle', 'largeIndex'],
  ['of a tenant is left alone by one that opens more indexes than may be open', 'places'],
])('memory %s', (_, scenario) => {
  const script = path.join(import.meta.dirname, 'memory-shares-process.ts');
  const { stderr, status } = spawnSync(process.execPath, [script, scenario], { encoding: 'utf8' });
  expect({ stderr, status }).toEqual({ stderr: '', status: 0 });
});
