/** The contract's own suite, unchanged, before three nodes: every request goes to another node than the last. */
import { spawn } from 'node:child_process';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startCluster, type LocalCluster } from '../../../deploy/local/cluster.ts';
import { serversMs } from '../../support/cluster/servers.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { repositoryRoot } from '../../support/running/launch.ts';

const isNightly = process.env['TEST_NIGHTLY'] === '1';
/** Its files, one after the other. */
const suiteMs = 600_000;

/**
 * All but three tests. What no HTTP parser takes is answered by the balancer, in its own way. And two count the chunks
 * without codes, which are scored exactly, by what one process keeps in its active segment: nodes keep a merge's worth.
 */
const others = ['\\[decision-17\\]', '\\[decision-11\\] `candidate_count`', 'a sealed segment gets codes'];
const answeredByNodes = `^(?!.*(?:${others.join('|')}))`;

let cluster: LocalCluster | undefined;
beforeAll(async () => {
  if (isNightly)
    cluster = await startCluster({
      directory: await newDirectory(),
      nodes: 0,
      balance: 'turns',
    });
}, serversMs);
afterAll(() => cluster?.stop());

it.runIf(isNightly)('holds', { timeout: suiteMs }, async () => {
  const environment = cluster?.environment ?? {};
  const child = spawn(
    process.execPath,
    [
      'node_modules/vitest/vitest.mjs',
      'run',
      'test/end-to-end/contract',
      '--maxWorkers=1',
      `--testNamePattern=${answeredByNodes}`,
    ],
    {
      cwd: repositoryRoot,
      env: { ...process.env, ...environment, TEST_CLUSTER: JSON.stringify(environment), NO_COLOR: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const ended = Promise.withResolvers<number | null>();
  child.once('close', ended.resolve);
  const code = await ended.promise;
  expect(code, output.slice(-20_000)).toBe(0);
  expect(output).toMatch(/Tests +\d{2,} passed/);
});
