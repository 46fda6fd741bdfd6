/**
 * The image as `deploy/docker/build-from-packages.sh` builds it, without a registry of images. Its root is read-only, and its
 * user is one that nobody named, as some hosts of containers want it. It shares the network of this machine.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chownSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { installMissingTools } from '../../deploy/local/debian-packages.ts';
import { newDirectory } from '../support/machine/temporary-directory.ts';
import { connect } from '../support/running/client.ts';
import { eventually } from '../support/running/eventually.ts';
import { find, makeIndex, put } from '../support/running/requests.ts';

const root = path.resolve(import.meta.dirname, '../..');
const tag = 'maxsimd:tested';
const user = 12_345;
const missing = missingTools();

/** The part of the image's configuration that says how it runs. */
interface Config {
  readonly Env: readonly string[];
  readonly Entrypoint: readonly string[];
  readonly Cmd: readonly string[];
}

describe.skipIf(missing !== undefined)(
  `the image without a registry of images${missing === undefined ? '' : `: ${missing}`}`,
  () => {
    let folder: string;
    let container: string | undefined;
    let mounted: string;
    let config: Config;
    let served: ChildProcess | undefined;
    const output: string[] = [];

    beforeAll(async () => {
      folder = await newDirectory();
      mkdirSync(path.join(folder, 'data'));
      chownSync(path.join(folder, 'data'), user, 0);
      execFileSync(path.join(root, 'deploy/docker/build-from-packages.sh'), buildArguments(folder), {
        stdio: ['ignore', 'ignore', 'inherit'],
      });
      container = buildah('from', tag);
      mounted = buildah('mount', container);
      const inspected = JSON.parse(buildah('inspect', container)) as { Docker: { config: Config } };
      config = inspected.Docker.config;
    });

    afterAll(() => {
      // Its init and the service have a group of their own.
      if (served?.pid !== undefined && served.exitCode === null) process.kill(-served.pid, 'SIGKILL');
      if (container === undefined) return;
      buildah('rm', container);
      buildah('rmi', tag);
    });

    /** Runs a command in the root, as its configuration says. */
    const inRoot = (command: readonly string[]): ChildProcess => {
      // The last step is an `exec`, so that a signal reaches the program itself.
      const script = `mount --bind "$0" "$0"
        mount -o remount,bind,ro "$0"
        mount -t tmpfs tmpfs "$0/tmp"
        mount --rbind /dev "$0/dev"
        mount -t proc proc "$0/proc"
        mount --bind "$1" "$0/var/lib/maxsimd"
        root=$0
        shift
        exec chroot --userspec=${user}:0 "$root" env --ignore-environment --chdir=/var/lib/maxsimd "$@"`;
      const ports = ['MAXSIMD_HTTP_PORT=0', 'MAXSIMD_METRICS_PORT=-1'];
      const args = ['--mount', 'sh', '-euc', script, mounted, path.join(folder, 'data')];
      return spawn('unshare', [...args, ...config.Env, ...ports, ...command], {
        stdio: ['ignore', 'pipe', 'pipe'],
        detached: true,
      });
    };
    const statusOf = (child: ChildProcess): Promise<number | null> =>
      new Promise((resolve) => child.on('exit', resolve));

    it('serves from a read-only root as a user that nobody named', async () => {
      const service = inRoot([...config.Entrypoint, ...config.Cmd]);
      served = service;
      for (const stream of [service.stdout, service.stderr])
        stream?.setEncoding('utf8').on('data', (part: string) => output.push(part));
      const url = await eventually(
        () => /"event":"ready","url":"([^"]+)"/.exec(output.join(''))?.[1] ?? gone(service, output),
      );
      const key = readFileSync(path.join(folder, 'data/first-api-key'), 'utf8').trim();
      const client = connect(url, key);
      const { id } = await makeIndex(client);
      await put(client, id, [{ doc_id: 'bee', text: 'Honey bees dance.' }]);
      expect(
        (await find(client, id, { query: 'insects' })).results.map(({ doc_id: docId }) => docId),
      ).toEqual(['bee']);
      expect(await statusOf(inRoot(['node', '/opt/maxsimd/health.mjs', `${url}/readyz`]))).toBe(0);
      const isReadOnly = "grep -q '^[^ ]* / [^ ]* ro' /proc/mounts";
      expect(await statusOf(inRoot(['sh', '-c', isReadOnly]))).toBe(0);
    });

    it('ends in order when it is asked to', async () => {
      const ended = statusOf(served!);
      served!.kill('SIGTERM');
      expect(await ended).toBe(0);
    });
  },
);

function missingTools(): string | undefined {
  if (process.env['CI'] !== undefined) return 'it takes minutes; `npm run test:release` has it';
  if (process.getuid?.() !== 0) return 'it needs root';
  return installMissingTools({ buildah: 'buildah', mmdebstrap: 'mmdebstrap' });
}

/** npm trusts what this machine trusts. The addon of this checkout is taken if its Debian is that of the image. */
function buildArguments(folder: string): readonly string[] {
  const npmrc = path.join(folder, 'npmrc');
  writeFileSync(npmrc, 'cafile=/etc/ssl/certs/ca-certificates.crt\n');
  const volumes = ['/etc/ssl/certs:/etc/ssl/certs:ro', `${npmrc}:/usr/local/etc/npmrc:ro`];
  const stamp = path.join(root, 'build/.bootstrap/addon');
  if (existsSync(stamp) && readFileSync('/etc/os-release', 'utf8').includes('VERSION_CODENAME=bookworm')) {
    const build = path.join(folder, 'build');
    for (const part of ['Release', '.bootstrap/addon'])
      cpSync(path.join(root, 'build', part), path.join(build, part), { recursive: true });
    volumes.push(`${build}:/source/build`);
  }
  return ['--tag', tag, ...volumes.map((volume) => `--volume=${volume}`)];
}

function buildah(...args: readonly string[]): string {
  return execFileSync('buildah', args, { encoding: 'utf8' }).trim();
}

function gone({ exitCode }: ChildProcess, output: readonly string[]): undefined {
  if (exitCode !== null) throw new Error(`ended with ${exitCode}: ${output.join('')}`);
  return undefined;
}
