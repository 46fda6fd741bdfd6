/**
 * Schemathesis against the running service and the document that it serves: no 500, no status, header or body that the
 * document does not have, nothing accepted that it forbids. Every night, for minutes; `TEST_SCHEMATHESIS=SECONDS` for so
 * long. `TEST_SEED` repeats a run.
 */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';

import { missingPython, pythonEnvironment, run } from '../../../clients/tools/install.ts';
import { rounds } from '../../rounds.ts';
import { announceRandom } from '../../support/running/random.ts';
import { useStage } from '../../support/running/stage.ts';
import { makeIndex, put } from '../../support/running/requests.ts';

const given = process.env['TEST_SCHEMATHESIS'];
const seconds = given === undefined ? rounds({ short: 0, nightly: 1200 }) : Number(given);
/**
 * Checks of Schemathesis that do not fit our contract. An unknown method is 404. A request that meets the schema may be 422, for
 * a name that exists or an unknown model. A document of an upsert with status 200 may be in `failed`, so it cannot be got.
 */
const excluded = 'unsupported_method,positive_data_acceptance,ensure_resource_availability';
const noPython = seconds === 0 ? 'runs every night' : missingPython();

describe.skipIf(noPython !== undefined)('the served document and the service', () => {
  const stage = useStage();

  test.each([
    ['as they come', []],
    // Only ids of what is there lead any further.
    ['about an index that is there', ['--exclude-method', 'DELETE', '--include-path-regex', 'index_id']],
  ])(
    'agree on requests %s',
    async (_, filters) => {
      const binaries = await pythonEnvironment(
        'schemathesis',
        path.join(import.meta.dirname, 'requirements.txt'),
      );
      const { client, server, tenant } = stage;
      const random = announceRandom('schemathesis');
      const settings = path.join(server.scratch.temporary, 'schemathesis.toml');
      const { id } = await makeIndex(client);
      await put(client, id, [{ doc_id: 'a', text: 'a stone house by the river', metadata: { a: 1 } }]);
      await writeFile(settings, filters.length === 0 ? '' : `[parameters]\n"path.index_id" = "${id}"\n`);
      const output = await run(
        path.join(binaries, 'schemathesis'),
        [
          ['--config-file', settings, 'run', `${server.url}/openapi.json`],
          ['--header', `Authorization: Bearer ${tenant.key}`],
          ['--checks', 'all', '--exclude-checks', excluded, '--continue-on-failure'],
          ['--generation-database', 'none', '--no-color'],
          ['--max-time', String(Math.ceil(seconds / 2)), '--seed', String(random.seed)],
          filters,
        ].flat(),
        server.scratch.temporary,
      );
      const generated = Number(/(\d+) generated/.exec(output)?.[1]);
      console.log(`schemathesis: ${generated} requests`);
      expect(generated).toBeGreaterThan(100);
    },
    60_000 + 4000 * seconds,
  );
});
