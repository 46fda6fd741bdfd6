/** The parts for LangChain, LlamaIndex and Haystack with those frameworks, 456 MB of packages: every night. */
import path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { missingPython, run } from '../../clients/tools/install.ts';
import { repositoryRoot } from '../support/running/launch.ts';
import { useSharedStage } from '../support/running/stage.ts';
import { guideExamples } from '../clients/guide.ts';
import { installedPython, pythonSource } from '../clients/python-package.ts';

const reason = process.env['TEST_NIGHTLY'] === '1' ? missingPython() : 'every night';

describe.skipIf(reason !== undefined)(`frameworks${reason === undefined ? '' : ` (${reason})`}`, () => {
  const stage = useSharedStage();
  let python = '';
  beforeAll(async () => {
    python = await installedPython('frameworks', 'requirements-integrations.txt');
  }, 1_800_000);

  const environment = (): Record<string, string> => ({
    MAXSIMD_URL: stage.server.url,
    MAXSIMD_API_KEY: stage.tenant.key,
    PYTHONDONTWRITEBYTECODE: '1',
    HAYSTACK_TELEMETRY_ENABLED: 'False',
  });

  test('retrieve and rerank through the service', async () => {
    const options = ['-m', 'pytest', '-q', '-p', 'no:cacheprovider', '-o', 'asyncio_mode=auto'];
    const printed = await run(python, [...options, 'tests_of_integrations'], pythonSource, environment());
    expect(printed).toMatch(/\b\d{2,} passed/);
    expect(printed).not.toMatch(/skipped|xfailed/);
  });

  test('are typed', async () => {
    const cache = path.join(repositoryRoot, 'build/clients/mypy-of-frameworks');
    const options = [
      '-m',
      'mypy',
      '--config-file=',
      '--strict',
      '--cache-dir',
      cache,
      'src/maxsimd/integrations',
    ];
    expect(await run(python, options, pythonSource)).toContain('no issues found');
  });

  test('so do the examples of the guide', async () => {
    for (const example of guideExamples('py', 'frameworks.md')) {
      expect(await run(python, ['-c', example], pythonSource, environment())).toMatch(
        /^Honey bees .*\nThe blue whale .*\n$/,
      );
    }
  });
});
