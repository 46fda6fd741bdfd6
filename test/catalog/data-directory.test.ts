import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, readFile, readdir, stat, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  isDataDirectoryLocked,
  lockDataDirectory,
  prepareDataDirectory,
} from '../../src/catalog/data-directory.ts';
import { createKeyPepper, readKeyPepper } from '../../src/catalog/key-pepper.ts';
import { newDirectory } from '../support/machine/temporary-directory.ts';

const source = path.resolve(import.meta.dirname, '../../src/catalog');

/** Starts a program of one line. Resolves with its first line of output while it runs on. */
async function start(code: string) {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [output] = (await once(child.stdout, 'data')) as [Buffer];
  return { child, output: output.toString().trim() };
}

describe('the data directory', () => {
  it('is made with its parents, for its owner only', async () => {
    const directory = path.join(await newDirectory(), 'a', 'b', 'data');
    await prepareDataDirectory(directory);
    expect((await stat(directory)).mode & 0o777).toBe(0o700);
    await expect(prepareDataDirectory(directory)).resolves.toBeUndefined();
  });

  it('that others could read is closed to them', async () => {
    const directory = path.join(await newDirectory(), 'data');
    await mkdir(directory);
    await chmod(directory, 0o755);
    await prepareDataDirectory(directory);
    expect((await stat(directory)).mode & 0o777).toBe(0o700);
  });

  it('cannot be a file', async () => {
    const file = path.join(await newDirectory(), 'data');
    await writeFile(file, '');
    await expect(prepareDataDirectory(file)).rejects.toThrow(/cannot be made .EEXIST.; MAXSIMD_DATA_DIR/);
  });
});

describe('the lock of the data directory', () => {
  it('is held by one at a time, and can be taken again when released', async () => {
    const directory = await newDirectory();
    expect(isDataDirectoryLocked(directory)).toBe(false);
    const lock = lockDataDirectory(directory);
    expect(isDataDirectoryLocked(directory)).toBe(true);
    expect(() => lockDataDirectory(directory)).toThrow(/another server/);
    expect(isDataDirectoryLocked(directory)).toBe(true);
    lock.release();
    lock.release();
    expect(isDataDirectoryLocked(directory)).toBe(false);
    lockDataDirectory(directory).release();
  });

  it('is not held in a directory that does not exist', async () => {
    expect(isDataDirectoryLocked(path.join(await newDirectory(), 'missing'))).toBe(false);
  });

  it('is seen by other processes, and released by the kernel when its holder is killed', async () => {
    const directory = await newDirectory();
    const { child } = await start(
      `import { lockDataDirectory } from ${JSON.stringify(path.join(source, 'data-directory.ts'))};
       // Without a reference the lock could be garbage-collected.
       globalThis.lock = lockDataDirectory(${JSON.stringify(directory)});
       console.log('locked');
       setInterval(() => {}, 1000);`,
    );
    const exited = once(child, 'exit');
    try {
      expect(isDataDirectoryLocked(directory)).toBe(true);
      expect(() => lockDataDirectory(directory)).toThrow(/another server/);
    } finally {
      child.kill('SIGKILL');
    }
    await exited;
    expect(isDataDirectoryLocked(directory)).toBe(false);
    lockDataDirectory(directory).release();
  });
});

describe('the key pepper', () => {
  it('is made once, readable by its owner only, and kept', async () => {
    const directory = await newDirectory();
    const peppers = await Promise.all(Array.from({ length: 8 }, () => createKeyPepper(directory)));
    expect(new Set(peppers.map((pepper) => Buffer.from(pepper).toString('hex'))).size).toBe(1);
    expect(peppers[0]).toHaveLength(32);
    expect(await readdir(directory)).toEqual(['key-pepper']);
    expect((await stat(path.join(directory, 'key-pepper'))).mode & 0o777).toBe(0o600);
    expect(await createKeyPepper(directory)).toEqual(peppers[0]);
    expect(await createKeyPepper(await newDirectory())).not.toEqual(peppers[0]);
  });

  it('is the same for processes that start at once', async () => {
    const directory = await newDirectory();
    const code = `import { createKeyPepper, readKeyPepper } from ${JSON.stringify(path.join(source, 'key-pepper.ts'))};
      console.log((await createKeyPepper(${JSON.stringify(directory)})).toString('hex'));`;
    const started = await Promise.all([1, 2, 3].map(() => start(code)));
    const stored = (await readFile(path.join(directory, 'key-pepper'))).toString('hex');
    expect(started.map(({ output }) => output)).toEqual([stored, stored, stored]);
  });

  it('that is damaged or open to others is refused', async () => {
    const directory = await newDirectory();
    await createKeyPepper(directory);
    const file = path.join(directory, 'key-pepper');
    await chmod(file, 0o640);
    expect(await readKeyPepper(directory)).toMatch(/owner/);
    await chmod(file, 0o600);
    await truncate(file, 31);
    expect(await readKeyPepper(directory)).toMatch(/damaged/);
  });
});
