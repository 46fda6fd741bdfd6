import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, mkdir, readFile, readdir, stat, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
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

  it.runIf(process.platform === 'linux')('cannot be in a file system that makes no folders', async () => {
    await expect(prepareDataDirectory('/proc/x/y')).rejects.toThrow(
      /cannot be made .ENOENT.; MAXSIMD_DATA_DIR/,
    );
  });
});

/** Prepares the directory as user 4242 of group 0, makes a file in it, and returns the file's mode or what was refused. */
async function asAnotherUser(directory: string): Promise<string> {
  const { output } = await start(
    `import { prepareDataDirectory } from ${JSON.stringify(path.join(source, 'data-directory.ts'))};
     import { statSync, writeFileSync } from 'node:fs';
     process.setgroups([]);
     process.setgid(0);
     process.setuid(4242);
     const file = ${JSON.stringify(path.join(directory, 'server.lock'))};
     console.log(await prepareDataDirectory(${JSON.stringify(directory)}).then(() => {
       writeFileSync(file, '');
       return (statSync(file).mode & 0o777).toString(8);
     }, (error) => error.message));`,
  );
  return output;
}

// Another user takes the rights of root.
describe.skipIf(process.getuid?.() !== 0)('the data directory of another user', () => {
  let directory: string;
  beforeEach(async () => {
    const above = await newDirectory();
    await chmod(above, 0o755);
    directory = path.join(above, 'data');
    await mkdir(directory);
  });

  it('is used by members of its group, who make files for themselves alone', async () => {
    await chmod(directory, 0o2775);
    expect(await asAnotherUser(directory)).toBe('600');
    expect((await stat(directory)).mode & 0o7777).toBe(0o2775);
  });

  it.each([
    ['that everybody may write to', 0o777],
    ['that its group may not write to', 0o755],
  ])('%s is refused with what it needs', async (_, mode) => {
    await chmod(directory, mode);
    expect(await asAnotherUser(directory)).toBe(
      `${directory} belongs to user 0 and group 0 with mode ${mode.toString(8)}, and this process is user 4242: ` +
        `chown -R 4242 ${directory}, or chmod 770 ${directory}; MAXSIMD_DATA_DIR names another`,
    );
  });

  it('that the user owns and may not write to is refused with what it needs', async () => {
    await chown(directory, 4242, 0);
    await chmod(directory, 0o500);
    expect(await asAnotherUser(directory)).toContain(`: chmod -R u+rwX ${directory}; MAXSIMD_DATA_DIR`);
  });

  it('that holds files of another user is refused with what it needs', async () => {
    await chmod(directory, 0o770);
    await writeFile(path.join(directory, 'server.lock'), '', { mode: 0o600 });
    expect(await asAnotherUser(directory)).toContain(`chown -R 4242 ${directory}; MAXSIMD_DATA_DIR`);
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
