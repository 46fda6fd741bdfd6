/** The parts for LangChain, LlamaIndex and Haystack with those frameworks, 456 MB of packages: every night. */
import { beforeAll, describe, expect, test } from 'vitest';
import { missingPython, run } from '../../clients/tools/install.ts';
import { useStage } from '../support/running/stage.ts';
import { guideExamples } from './guide.ts';
import { installedPython, pythonSource } from './python-package.ts';

const reason = process.env['TEST_NIGHTLY'] === '1' ? missingPython() : 'every night';

describe.skipIf(reason !== undefined)(`frameworks${reason === undefined ? '' : ` (${reason})`}`, () => {
  const stage = useStage();
  let python = '';
  beforeAll(() => {
    python = installedPython('frameworks', 'requirements-integrations.txt');
  }, 600_000);

  const environment = (): Record<string, string> => ({
    MAXSIMD_URL: stage.server.url,
    MAXSIMD_API_KEY: stage.tenant.key,
    PYTHONDONTWRITEBYTECODE: '1',
    HAYSTACK_TELEMETRY_ENABLED: 'False',
  });

  test('retrieve and rerank through the service', () => {
    const options = ['-m', 'pytest', '-q', '-p', 'no:cacheprovider', 'tests_of_integrations'];
    expect(run(python, options, pythonSource, environment())).toMatch(/\b4 passed/);
  }, 300_000);

  test('so does the example of the guide', () => {
    const [example = ''] = guideExamples('py');
    expect(run(python, ['-c', example], pythonSource, environment())).toMatch(
      /^Honey bees .*\nThe blue whale .*\n$/,
    );
  });
});
