/** The Python client as a package, against the real service: its own tests, its types, and the examples of the guide. */
import { readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { missingPython, run } from '../../clients/tools/install.ts';
import { repositoryRoot } from '../support/running/launch.ts';
import { useSharedStage } from '../support/running/stage.ts';
import { guideExamples } from './guide.ts';
import { installedPython, pythonSource as source } from './python-package.ts';

const noPython = missingPython();
const wheels = path.join(repositoryRoot, 'build/clients/python-wheel');

describe.skipIf(noPython !== undefined)(`Python${noPython === undefined ? '' : ` (${noPython})`}`, () => {
  const stage = useSharedStage();
  let python = '';

  beforeAll(async () => {
    python = await installedPython('python', 'requirements-test.txt');
  });

  const environment = (): Record<string, string> => ({
    MAXSIMD_URL: stage.server.url,
    MAXSIMD_API_KEY: stage.tenant.key,
    PYTHONDONTWRITEBYTECODE: '1',
  });

  test('the wheel is typed', async () => {
    const [wheel = ''] = readdirSync(wheels);
    const names = await run(python, ['-m', 'zipfile', '--list', path.join(wheels, wheel)], wheels);
    expect(names).toContain('maxsimd/py.typed');
    expect(names).toContain('licenses/LICENSE');
    const cache = path.join(repositoryRoot, 'build/clients/mypy');
    const options = ['--cache-dir', cache, '--config-file', path.join(source, 'pyproject.toml')];
    expect(await run(python, ['-m', 'mypy', ...options, '-p', 'maxsimd'], wheels)).toContain(
      'no issues found',
    );
    expect(await run(python, ['-m', 'mypy', ...options, path.join(source, 'tests')], wheels)).toContain(
      'no issues',
    );
  });

  test('its tests pass', async () => {
    const narrow = await stage.newTenant({ requestsPerMinute: 1_000_000, maxConcurrentRequests: 1 });
    const small = await stage.newTenant({ requestsPerMinute: 1_000_000, documents: 70 });
    const printed = await run(python, ['-m', 'pytest', '-q', '-p', 'no:cacheprovider'], source, {
      ...environment(),
      MAXSIMD_NARROW_API_KEY: narrow.key,
      MAXSIMD_SMALL_API_KEY: small.key,
    });
    expect(printed).toMatch(/\d\d passed/);
    expect(printed).not.toContain('skipped');
  });

  test('the examples of the guide run', async () => {
    const printed: string[] = [];
    for (const [number, code] of guideExamples('python').entries()) {
      const file = path.join(wheels, `example-${number}.py`);
      writeFileSync(file, code);
      printed.push(await run(python, [file], wheels, environment()));
    }
    expect(printed).toEqual([
      expect.stringMatching(/^\d\.\d\d Honey bees .*\n\d\.\d\d The blue whale.*\n$/),
      expect.stringMatching(/^bee\nwhale\n$/),
      '422 validation_error True\nquery too_small\ndocuments too_small\n',
    ]);
  });
});
