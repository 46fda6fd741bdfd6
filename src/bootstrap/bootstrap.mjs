/**
 * Makes a bare clone ready to run. Installs the packages if the lock changed, builds the addon if `native/` changed, and the
 * console if `src/console` changed. Then the npm script goes on with `exec node`, which by then is the Node 24 from the
 * packages. This file is plain JavaScript because it runs on Node 20.
 *
 * Its arguments are the port variables of the script, with their defaults: `MAXSIMD_HTTP_PORT=8080`. A port that is in use
 * ends the start before the work begins, because the work takes minutes.
 *
 * A lock directory with its owner's process id serialises two first starts at once.
 */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';

const root = path.resolve(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname), '../..');
const stamps = path.join(root, 'build', '.bootstrap');
const lock = path.join(root, '.bootstrap.lock');
const binaries = path.join(root, 'node_modules', '.bin');
const consoleBuilder = path.join(root, 'src', 'bootstrap', 'build-console.mjs');
const oldestNode = [22, 18];
const lineEveryMs = 5_000;
const announcements = {
  npm: 'installing packages (once; about a minute)',
  console: 'building the console (once; seconds)',
  addon: 'building the addon (once; half a minute on eight cores, one to four minutes on two)',
};

await main();

async function main() {
  if (upToDate()) return;
  for (const argument of process.argv.slice(2)) await requireFreePort(...argument.split('='));
  await withLock(async () => {
    await step('npm', installHash(), installed(), async () => {
      await run('npm', ['ci', '--loglevel=error', '--include=dev', '--include=optional']);
    });
    await step('addon', addonHash(), built(), async () => {
      requireTool('cmake', 'cmake');
      await run(path.join(binaries, 'cmake-js'), ['compile']);
    });
    await step('console', consoleHash(), pageBuilt(), async () => {
      await run('node', [consoleBuilder]);
    });
  });
  requireNode();
}

function upToDate() {
  return (
    installed() &&
    stamp('npm') === installHash() &&
    stamp('addon') === addonHash() &&
    built() &&
    stamp('console') === consoleHash() &&
    pageBuilt()
  );
}

/** npm writes this file last. */
function installed() {
  return existsSync(path.join(root, 'node_modules', '.package-lock.json'));
}

function built() {
  return ['maxsimd.node', 'page-checksums.so'].every((name) =>
    existsSync(path.join(root, 'build', 'Release', name)),
  );
}

function pageBuilt() {
  return existsSync(path.join(root, 'build', 'console', 'index.html'));
}

/** Runs `action` unless the stamp of an earlier success still matches. */
async function step(name, hash, present, action) {
  if (present && stamp(name) === hash) return;
  const started = Date.now();
  process.stderr.write(`maxsimd: ${announcements[name]} ...\n`);
  await action();
  mkdirSync(stamps, { recursive: true });
  writeFileSync(path.join(stamps, name), hash);
  process.stderr.write(`maxsimd: done in ${((Date.now() - started) / 1000).toFixed(1)} s\n`);
}

function stamp(name) {
  const file = path.join(stamps, name);
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
}

function installHash() {
  return hashFiles([path.join(root, 'package-lock.json'), path.join(root, '.npmrc')]);
}

function addonHash() {
  return hashFiles(
    [path.join(root, 'CMakeLists.txt'), ...filesUnder(path.join(root, 'native'))],
    installHash(),
  );
}

function consoleHash() {
  return hashFiles([consoleBuilder, ...filesUnder(path.join(root, 'src', 'console'))], installHash());
}

function hashFiles(files, salt = '') {
  const hash = createHash('sha256').update(`${process.platform} ${process.arch} ${salt}`);
  for (const file of files) hash.update(path.relative(root, file)).update('\0').update(readFileSync(file));
  return hash.digest('hex');
}

function filesUnder(directory) {
  return readdirSync(directory, { recursive: true })
    .map((name) => path.join(directory, String(name)))
    .filter((file) => statSync(file).isFile())
    .toSorted();
}

/**
 * Runs a command and prints its progress every few seconds, as Ninja (`[12/63]`) or Make (`[ 19%]`) counts it. Prints the
 * command's output only if the command fails.
 */
async function run(command, args) {
  const env = { ...process.env, PATH: `${binaries}${path.delimiter}${process.env.PATH ?? ''}` };
  const child = spawn(command, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const started = Date.now();
  const parts = [];
  let percent = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (part) => {
      parts.push(part);
      const count = [...part.matchAll(/\[ *(\d+)(?:\/(\d+)|%)\]/g)].at(-1);
      if (count === undefined) return;
      percent = `, ${Math.floor((100 * Number(count[1])) / Number(count[2] ?? 100))}%`;
    });
  }
  const timer = setInterval(() => {
    process.stderr.write(`maxsimd: ${Math.round((Date.now() - started) / 1000)} s${percent}\n`);
  }, lineEveryMs);
  const ended = await new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', (code, signal) => resolve(code === 0 ? undefined : `exit ${code ?? signal}`));
  });
  clearInterval(timer);
  if (ended === undefined) return;
  process.stderr.write(parts.join(''));
  fail(`${path.basename(command)} ${args.join(' ')} failed (${ended})`);
}

/** The program itself refuses values that are no port numbers. */
async function requireFreePort(variable, usual = '') {
  const port = Number(process.env[variable] ?? usual);
  if (!(port >= 1 && port <= 65535)) return;
  const host = process.env[variable.replace(/_PORT$/, '_HOST')] || '127.0.0.1';
  const code = await new Promise((resolve) => {
    const server = createServer().once('error', (error) => resolve(error.code));
    server.listen(port, host, () => server.close(resolve));
  });
  if (code === 'EADDRINUSE') {
    process.stderr.write(
      `maxsimd: ${variable}: port ${port} of ${host} is in use; choose another, or 0 for any free one\n`,
    );
    process.exit(1);
  }
}

function requireTool(command, what) {
  if (spawnSync(command, ['--version'], { stdio: 'ignore' }).error)
    fail(`${what} is needed to build the addon: install it and a C++20 compiler`);
}

function requireNode() {
  const environment = { ...process.env, PATH: `${binaries}${path.delimiter}${process.env.PATH ?? ''}` };
  const version =
    spawnSync('node', ['--version'], { env: environment, encoding: 'utf8' }).stdout?.trim() ?? '';
  const [major = 0, minor = 0] = version.slice(1).split('.').map(Number);
  if (major < oldestNode[0] || (major === oldestNode[0] && minor < oldestNode[1])) {
    fail(
      `Node ${oldestNode.join('.')} or later is needed and no packaged one fits ${process.platform}-${process.arch} (found ${version})`,
    );
  }
}

async function withLock(action) {
  for (;;) {
    try {
      mkdirSync(lock);
      writeFileSync(path.join(lock, 'pid'), String(process.pid));
      break;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
      if (ownerIsGone()) rmSync(lock, { recursive: true, force: true });
      else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
    }
  }
  try {
    await action();
  } finally {
    rmSync(lock, { recursive: true, force: true });
  }
}

function ownerIsGone() {
  const file = path.join(lock, 'pid');
  // A lock without an owner is being written, or its process was killed right after it made the lock.
  if (!existsSync(file)) return existsSync(lock) && Date.now() - statSync(lock).mtimeMs > 5000;
  try {
    process.kill(Number(readFileSync(file, 'utf8')), 0);
    return false;
  } catch (error) {
    return error.code === 'ESRCH';
  }
}

function fail(message) {
  process.stderr.write(`maxsimd: ${message}\n`);
  rmSync(lock, { recursive: true, force: true });
  process.exit(1);
}
