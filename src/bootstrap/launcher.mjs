#!/usr/bin/env node
/**
 * The command of the installed package (`bin/maxsimd.mjs` there) and of a checkout, where it first installs and builds what
 * is missing. Runs the program in this process if this Node is recent enough, otherwise on the Node that npm installed beside
 * it. This file is plain JavaScript because it runs on Node 20.
 */
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** The first Node with `AsyncDisposableStack`. */
const oldestMajor = 24;

const directory = path.dirname(fileURLToPath(import.meta.url));
const isCheckout = path.basename(directory) === 'bootstrap';

endWithNpm();
if (isCheckout && process.channel === undefined) prepareCheckout();
if (Number.parseInt(process.versions.node, 10) >= oldestMajor) {
  endWithLauncher();
  await import(isCheckout ? '../cli/main.ts' : '../src/cli/main.js');
} else {
  runOn(packagedNode());
}

/**
 * Ends this process if npm or its shell ends. `npx` and `npm run` start a shell, which starts this process. SIGTERM ends the
 * shell alone. SIGHUP and SIGKILL end npm alone, and the shell goes on waiting. Either signal was meant for this process, too.
 */
function endWithNpm() {
  if (process.env.npm_command === undefined) return;
  const shell = process.ppid;
  const npm = parentOfShell(shell);
  const watch = setInterval(() => {
    if (process.ppid === shell && parentOfShell(shell) === npm) return;
    clearInterval(watch);
    process.kill(process.pid, 'SIGTERM');
  }, 250);
  watch.unref();
}

/** Undefined without /proc, and if the shell has replaced itself by this process. Then the end of npm means nothing. */
function parentOfShell(id) {
  try {
    const [, name, parent] = /^\d+ \((.*)\) \S (\d+)/.exec(readFileSync(`/proc/${id}/stat`, 'utf8'));
    return name === 'sh' ? parent : undefined;
  } catch {
    return undefined;
  }
}

/** A launcher on an older Node has a channel to this process. It closes when the launcher ends, however it ended. */
function endWithLauncher() {
  if (process.channel === undefined) return;
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
  process.channel.unref();
}

function prepareCheckout() {
  const { status } = spawnSync(process.execPath, [path.join(directory, 'bootstrap.mjs')], {
    stdio: 'inherit',
  });
  if (status !== 0) process.exit(status ?? 1);
}

function packagedNode() {
  if (isCheckout) return path.join(directory, '../../node_modules/.bin/node');
  const name = `@maxsimd/node-${process.platform}-${process.arch}`;
  try {
    const manifest = createRequire(import.meta.url).resolve(`${name}/package.json`);
    return path.join(path.dirname(manifest), 'bin', 'node');
  } catch {
    return fail(
      `Node ${oldestMajor} or later is needed, this is ${process.version}, and ${name} is not installed: ` +
        'use a later Node, or install maxsimd again with this one and with optional dependencies',
    );
  }
}

function fail(message) {
  process.stderr.write(`maxsimd: ${message}\n`);
  process.exit(1);
}

/** Runs this file again on `node`, and ends as that process ends. */
function runOn(node) {
  const args = [fileURLToPath(import.meta.url), ...process.argv.slice(2)];
  const child = spawn(node, args, { stdio: ['inherit', 'inherit', 'inherit', 'ipc'] });
  child.once('error', (error) => fail(`cannot run ${node}: ${error.message}`));
  const forward = (signal) => {
    // A terminal sends Ctrl-C to the child, too.
    if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal);
  };
  const signals = ['SIGTERM', 'SIGINT', 'SIGHUP'];
  for (const signal of signals) process.on(signal, forward);
  child.once('exit', (code, signal) => {
    if (signal === null) process.exit(code);
    for (const name of signals) process.off(name, forward);
    process.kill(process.pid, signal);
  });
}
