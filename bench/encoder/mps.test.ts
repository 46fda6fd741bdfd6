/** The Multi-Process Service of NVIDIA, whose control program is a script here. */
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { scratchFolder } from '../lib/endings.ts';
import { startMps } from './mps.ts';

afterEach(() => {
  vi.unstubAllEnvs();
});

/** Finds the script as the control program; what it is asked goes to a file. */
function withControl(script: string): Disposable & { readonly asked: () => string } {
  const folder = scratchFolder('mps-test');
  const file = path.join(folder.path, 'nvidia-cuda-mps-control');
  const asked = path.join(folder.path, 'asked');
  writeFileSync(file, `#!/bin/sh\n${script.replaceAll('ASKED', asked)}\n`);
  chmodSync(file, 0o755);
  vi.stubEnv('PATH', `${folder.path}:${process.env['PATH'] ?? ''}`);
  return {
    asked: () => readFileSync(asked, 'utf8'),
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  };
}

describe('the Multi-Process Service', () => {
  it('has folders of its own, says who uses it, and ends', () => {
    using control = withControl(`
      [ "$1" = -d ] && { sleep 2 & echo "$CUDA_MPS_PIPE_DIRECTORY" >>ASKED; exit; }
      read -r line; echo "$line" >>ASKED
      case $line in get_server_list) echo 12 ;; 'get_client_list 12') printf 'PID\\n34\\n 56 x\\n' ;; esac`);
    const mps = startMps();
    const folder = process.env['CUDA_MPS_PIPE_DIRECTORY'] ?? '';
    expect(existsSync(folder)).toBe(true);
    expect(process.env['CUDA_MPS_LOG_DIRECTORY']).toBe(folder);
    expect(mps.use()).toEqual({ clients: [34, 56], said: '12\nPID\n34\n 56 x' });
    writeFileSync(path.join(folder, 'server.log'), 'the last words\n');
    expect(mps.log()).toContain('the last words');
    mps[Symbol.dispose]();
    expect(control.asked()).toBe(`${folder}\nget_server_list\nget_client_list 12\nquit\n`);
    expect(existsSync(folder)).toBe(false);
    expect(process.env['CUDA_MPS_PIPE_DIRECTORY']).toBeUndefined();
  });

  it('says why it did not start', () => {
    using control = withControl('echo no such device; exit 1');
    expect(() => startMps()).toThrow(/did not start: exit code 1\nno such device$/);
    expect(process.env['CUDA_MPS_PIPE_DIRECTORY']).toBeUndefined();
    expect(() => control.asked()).toThrow(/ENOENT/);
    vi.stubEnv('PATH', '/nowhere');
    expect(() => startMps()).toThrow(/nvidia-cuda-mps-control did not start: .*ENOENT/);
  });
});
