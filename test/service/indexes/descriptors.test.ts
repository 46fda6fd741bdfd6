/** A process of its own that has no file descriptors left. */
import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

it('want of file descriptors is 503 with Retry-After, damages nothing, and passes', async () => {
  const script = path.join(import.meta.dirname, 'descriptors-process.ts');
  const limited = 'ulimit -n 128; exec "$0" "$@"';
  const { stdout } = await promisify(execFile)('bash', ['-c', limited, process.execPath, script]);
  const { outcomes, ...rest } = JSON.parse(stdout) as {
    readonly outcomes: Record<string, readonly string[]>;
  };
  expect(rest).toEqual({ asAcknowledged: true, damaged: 0 });
  for (const [name, seen] of Object.entries(outcomes)) {
    expect([name, ...seen.filter((outcome) => outcome !== 'answered')]).toEqual(
      name === 'search' || name === 'upsert' ? [name, 'service_unavailable'] : [name],
    );
  }
});
