/** The rule of unit tests, with planted offenders. */
import { mkdirSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { expect, it } from 'vitest';
import { newDirectory } from './support/machine/temporary-directory.ts';
import { takeRefused } from './support/no-processes.ts';
import { unitTests } from './support/unit-tests.ts';

async function unitTestsAmong(files: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const root = await newDirectory();
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(path.join(root, path.dirname(file)), { recursive: true });
    writeFileSync(path.join(root, file), text);
  }
  return unitTests(root);
}

// In pieces: this file is a unit test itself.
const childProcess = ['node:child', 'process'].join('_');
const listening = ['server.lis', 'ten(0);'].join('');

it('a test file that reaches a process or a port by any import is no unit test', async () => {
  expect(
    await unitTestsAmong({
      'test/calls.test.ts': "import { add } from '../src/add.ts';",
      'test/spawns.test.ts': `import { spawn } from '${childProcess}';`,
      'test/listens.test.ts': listening,
      'test/stage.test.ts': "import { a } from './support/far.ts';",
      'test/types.test.ts': "import type { A } from './support/near.ts';",
      'test/serves.test.ts': "import {\n  serve,\n} from '../src/serve.ts';",
      'test/routes.test.ts': "import { routes } from '../src/routes.ts';",
      'test/support/far.ts': "export * from './near.ts';",
      'test/support/near.ts': listening,
      'src/add.ts': '',
      'src/serve.ts': listening,
      'src/routes.ts': "import { serve } from './serve.ts';",
    }),
  ).toEqual(['test/calls.test.ts', 'test/routes.test.ts', 'test/types.test.ts']);
});

it('a unit test that starts a process or listens all the same is refused', () => {
  const { execFileSync, fork, spawn } = process.getBuiltinModule('node:child_process');
  const server = http.createServer();
  const offences = [
    () => spawn('true'),
    () => execFileSync('true'),
    () => fork('none.js'),
    () => server['listen'](0),
  ];
  for (const offence of offences) expect(offence).toThrow('a unit test starts no process');
  expect(takeRefused()).toEqual(['spawn', 'execFileSync', 'fork', 'listen']);
});
