/** The contract's own suite, unchanged, before three nodes: every request goes to another node than the last. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startCluster, type LocalCluster } from '../../../deploy/local/cluster.ts';
import { serversMs } from '../../support/cluster/servers.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { rerunTests } from '../../support/stages/rerun.ts';

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
  const { code, output } = await rerunTests(['test/end-to-end/contract'], {
    environment: { ...environment, TEST_CLUSTER: JSON.stringify(environment) },
    pattern: answeredByNodes,
  });
  expect(code, output).toBe(0);
  expect(output).toMatch(/Tests +\d{2,} passed/);
});
