/**
 * The published packages as a user meets them: packed, installed into an empty folder with npm's scripts on, served by
 * `npx`, on the Node that the machine has (the checkout's own is taken out of the path). Then the whole way of a newcomer.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, readdirSync, realpathSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { missingPython } from '../../clients/tools/install.ts';
import { furtherModels } from '../../src/process/installation.ts';
import { newDirectory } from '../support/machine/temporary-directory.ts';
import { eventually } from '../support/running/eventually.ts';
import { childEnvironment } from '../support/running/launch.ts';
import { walk } from './newcomer/walk.ts';

const root = path.resolve(import.meta.dirname, '../..');
const waitMs = 120_000;
const started = new Set<ChildProcess>();
const noPython = missingPython();
let packed: string;
let made: {
  readonly service: readonly string[];
  readonly client?: string;
  readonly frameworks?: readonly string[];
  readonly wheel?: string;
};
let folder: string;
let environment: Record<string, string>;

beforeAll(async () => {
  folder = realpathSync(await newDirectory());
  packed = path.join(folder, 'packed');
  const work = noPython === undefined ? 'packAll(to)' : '({ service: await packService(to) })';
  const pack = `import { packAll, packService } from '${root}/packages/pack.ts'; const to = process.argv[1];
    process.stdout.write(JSON.stringify(await ${work}));`;
  made = JSON.parse(
    execFileSync(process.execPath, ['--input-type=module', '--eval', pack, packed], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'inherit'],
      encoding: 'utf8',
    }),
  ) as typeof made;
  const outside = (process.env['PATH'] ?? '').split(':').filter((entry) => !entry.includes('node_modules'));
  environment = childEnvironment({
    PATH: outside.join(':'),
    MAXSIMD_DATA_DIR: path.join(folder, 'data'),
    MAXSIMD_HTTP_PORT: '0',
    MAXSIMD_METRICS_PORT: '-1',
  });
  // Without these variables: npm sets them for its scripts, and they would count as settings of the user.
  for (const name of Object.keys(environment))
    if (/^(npm_|NODE_COMPILE)/i.test(name)) delete environment[name];
  writeFileSync(path.join(folder, 'package.json'), '{}');
  const files = made.service.map((name) => path.join(packed, name));
  const flags = ['--ignore-scripts=false', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'];
  execFileSync('npm', ['install', ...flags, ...files], { cwd: folder, env: environment, stdio: 'inherit' });
});

afterAll(() => {
  for (const child of started) if (child.pid !== undefined) killGroup(child.pid);
});

it('`npm run package` says in one line what is wrong', () => {
  const { status, stderr } = spawnSync(process.execPath, ['packages/main.ts', 'clients'], {
    cwd: root,
    encoding: 'utf8',
  });
  expect([status, stderr]).toEqual([1, 'no packages: the only argument is: service\n']);
});

it.skipIf(noPython !== undefined)('all packages are made at once, in a clone of any commit', () => {
  const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as {
    version: string;
  };
  const platform = `${process.platform}-${process.arch}`;
  const ofNpm = ['', 'models-', `${platform}-`, 'client-', 'langchain-', 'llamaindex-'];
  // Models that this checkout has built have packages, too.
  const further = new Set(furtherModels.map((name) => `maxsimd-${name}-${version}.tgz`));
  const names = readdirSync(packed).filter((name) => !further.has(name));
  for (const name of ofNpm) expect(names).toContain(`maxsimd-${name}${version}.tgz`);
  expect(names.filter((name) => name.startsWith(`maxsimd-node-${platform}-`))).toHaveLength(1);
  expect(names.filter((name) => /\.(whl|tar\.gz)$/.test(name))).toHaveLength(2);
  expect(names).toHaveLength(ofNpm.length + 3);
});

describe('the installed packages', () => {
  it('take as much disk as the guide says', () => {
    const files = readdirSync(path.join(folder, 'node_modules'), { recursive: true, withFileTypes: true });
    const bytes = files
      .filter((file) => file.isFile())
      // A file takes whole blocks of a disk.
      .reduce((sum, { parentPath, name }) => sum + blocksOf(statSync(path.join(parentPath, name)).size), 0);
    const guide = readFileSync(path.join(root, 'docs/guide/install.md'), 'utf8');
    const stated = [...guide.matchAll(/(\d+) MB/g)].map(([, mb]) => Number(mb));
    expect(stated).toHaveLength(1);
    // npm takes the latest dependencies that fit.
    expect(Math.abs(bytes / 1e6 - stated[0]!) / stated[0]!, `${bytes / 1e6} MB`).toBeLessThan(0.05);
  });

  it('bring neither what builds them nor files of other platforms', () => {
    const names = readdirSync(path.join(folder, 'node_modules'));
    for (const tool of ['cmake-js', 'node-api-headers', 'onnxruntime-node', 'typescript'])
      expect(names).not.toContain(tool);
    const files = readdirSync(path.join(folder, 'node_modules'), { recursive: true }).map(String);
    const runtimes = files.filter((file) => file.endsWith('onnxruntime_binding.node'));
    expect(runtimes).toHaveLength(1);
    expect(runtimes[0]).toContain(`/${process.platform}/${process.arch}/`);
    expect(files).toContain('maxsimd/src/cli/models/sample-texts.txt.gz');
  });

  it('have the names of the sources', () => {
    const program = path.join(folder, 'node_modules/maxsimd/src');
    const compiled = readdirSync(program, { recursive: true })
      .map(String)
      .filter((file) => file.endsWith('.js'));
    expect(compiled.length).toBeGreaterThan(100);
    // TypeScript 7.0.2 gives some classes another name in their own code, and properties of the same name, too.
    for (const file of compiled)
      expect(readFileSync(path.join(program, file), 'utf8'), file).not.toMatch(/^_[a-z] = /m);
  });

  it('need no install script to work, and bring a licence each', () => {
    const own = [
      'maxsimd',
      ...readdirSync(path.join(folder, 'node_modules/@maxsimd')).map((name) => `@maxsimd/${name}`),
    ];
    expect(own).toHaveLength(4);
    for (const name of own) {
      const file = path.join(folder, 'node_modules', name, 'package.json');
      expect(JSON.parse(readFileSync(file, 'utf8')), name).not.toHaveProperty('scripts');
      const licence = readFileSync(path.join(path.dirname(file), 'LICENSE'), 'utf8');
      expect(licence, name).toMatch(/Apache License|Node\.js is licensed/);
    }
  });

  it('serve, upsert and search, and end with npx at SIGTERM', { timeout: waitMs * 2 }, async () => {
    const server = npx(['serve']);
    const { url } = await server.ready;
    const key = await server.key;
    // oxlint-disable-next-line typescript/no-explicit-any -- answers of several shapes
    const post = async (route: string, body: unknown): Promise<{ status: number; answer: any }> => {
      const response = await fetch(`${url}${route}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      return { status: response.status, answer: await response.json() };
    };
    const { answer: index } = await post('/v1/indexes', { name: 'first' });
    const documents = [
      { doc_id: 'whale', text: 'The blue whale is the largest animal known to have existed.' },
      { doc_id: 'bee', text: 'Honey bees dance to tell each other where flowers are.' },
    ];
    expect((await post(`/v1/indexes/${index.id}/documents`, { documents })).status).toBe(200);
    const { answer } = await post(`/v1/indexes/${index.id}/search`, { query: 'how do insects communicate?' });
    expect(answer.results[0].doc_id).toBe('bee');
    const page = await fetch(`${url}/console`);
    expect(await page.text()).toContain('"console/console.js"');

    expect(processesOf(folder).length).toBeGreaterThan(1);
    process.kill(server.pid, 'SIGTERM');
    await eventually(() => processesOf(folder).length === 0, { everyMs: 200 });
    expect(server.stderr()).toContain('"msg":"closed"');
  });
});

describe.skipIf(noPython !== undefined)(`a newcomer${noPython === undefined ? '' : ` (${noPython})`}`, () => {
  it('imports from Python, searches from TypeScript, and moves to a second model while every search is answered', async () => {
    const server = npx(['serve']);
    const [{ url }, key] = await Promise.all([server.ready, server.key]);
    const { answered, failures } = await walk({
      folder,
      tarball: path.join(packed, made.client!),
      wheel: path.join(packed, made.wheel!),
      model: path.join(root, 'test/fixtures/colbert-tiny/1'),
      environment: { ...environment, MAXSIMD_URL: url, MAXSIMD_API_KEY: key },
    });
    expect(failures).toEqual([]);
    expect(answered).toBeGreaterThan(10);
  });
});

describe('a model that is not in the repository', () => {
  const [name = ''] = furtherModels;
  const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as {
    version: string;
  };
  const maxsimd = (...args: string[]) =>
    spawnSync('npx', ['maxsimd', ...args], { cwd: folder, env: environment, encoding: 'utf8' });
  const packFurther = (from: string, to: string): void => {
    const pack = `import { packFurtherModels } from '${root}/packages/pack.ts'; await packFurtherModels(...process.argv.slice(1));`;
    execFileSync(process.execPath, ['--input-type=module', '--eval', pack, from, to], { cwd: root });
  };
  const listed = () =>
    JSON.parse(maxsimd('models', 'list', '--json').stdout) as {
      readonly data: readonly { readonly name: string; readonly directory: string }[];
      readonly available: readonly string[];
    };

  it('is not built in an installation: the command names the package', () => {
    const { status, stderr } = maxsimd('models', 'build', name.replace('-maxsim', ''));
    expect(status).toBe(1);
    expect(stderr).toContain(`npm install @maxsimd/${name}@${version}`);
    expect(listed().available).toEqual([name]);
  });

  it('has a package once it is built, and an installation finds it there', () => {
    const models = path.join(folder, 'built');
    const to = path.join(folder, 'further');
    mkdirSync(to);
    packFurther(models, to);
    expect(readdirSync(to)).toEqual([]);
    cpSync(path.join(root, 'test/fixtures/colbert-tiny/1'), path.join(models, name, '1'), {
      recursive: true,
    });
    writeFileSync(path.join(models, name, '1/manifest.json'), JSON.stringify({ name, version: '1' }));
    packFurther(models, to);
    const file = `maxsimd-${name}-${version}.tgz`;
    expect(readdirSync(to)).toEqual([file]);
    const flags = ['--no-save', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'];
    execFileSync('npm', ['install', ...flags, path.join(to, file)], { cwd: folder, env: environment });
    const place = path.join(folder, 'node_modules/@maxsimd', name);
    expect(readFileSync(path.join(place, 'LICENSE'), 'utf8')).toContain('Apache License');
    const { data, available } = listed();
    expect(data.find((model) => model.name === name)?.directory).toBe(path.join(place, name, '1'));
    expect(available).toEqual([]);
  });
});

function blocksOf(bytes: number): number {
  return Math.ceil(bytes / 4096) * 4096;
}

interface Npx {
  readonly pid: number;
  readonly ready: Promise<{ readonly url: string }>;
  /** The key of the first tenant. */
  readonly key: Promise<string>;
  stderr(): string;
}

function npx(args: readonly string[]): Npx {
  const child = spawn('npx', ['maxsimd', ...args], {
    cwd: folder,
    env: environment,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  started.add(child);
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (part: Buffer) => (stdout += part.toString()));
  child.stderr.on('data', (part: Buffer) => (stderr += part.toString()));
  const ready = eventually(() => {
    if (child.exitCode !== null) throw new Error(`npx ended: ${stdout}${stderr}`);
    const line = stdout.split('\n').find((text) => text.startsWith('{"event":"ready"') && text.endsWith('}'));
    return line === undefined ? undefined : (JSON.parse(line) as { url: string });
  });
  const key = ready.then(() => readFileSync(path.join(folder, 'data/first-api-key'), 'utf8').trim());
  key.catch(() => undefined);
  if (child.pid === undefined) throw new Error('npx could not be started');
  return { pid: child.pid, ready, key, stderr: () => stderr };
}

/** Process ids of those whose command line names the folder. */
function processesOf(directory: string): readonly string[] {
  return execFileSync('ps', ['-A', '-ww', '-o', 'pid=,args='], { encoding: 'utf8' })
    .split('\n')
    .filter((line) => line.includes(`${directory}/node_modules/`));
}

function killGroup(group: number): void {
  try {
    process.kill(-group, 'SIGKILL');
  } catch {
    // It has ended.
  }
}
