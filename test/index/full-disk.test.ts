/** A merge that meets a full disk, in a process of its own with a limit on the size of its files. */
import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

const limitKibibytes = 3 * 1024;

describe('a full disk', () => {
  it('stops merges, loses nothing, and merges go on when there is space', async () => {
    const script = path.join(import.meta.dirname, 'full-disk-process.ts');
    // Ignored before the exec, the signal stays ignored: a write beyond the limit fails as on a full disk.
    const limited = `trap '' XFSZ; ulimit -S -f ${limitKibibytes}; exec "$0" "$@"`;
    const { stdout } = await promisify(execFile)('bash', ['-c', limited, process.execPath, script], {
      timeout: 60_000,
    });
    const seen: unknown = JSON.parse(stdout);
    expect(seen).toEqual({
      documents: 40,
      whileFull: {
        codes: ['no_space'],
        documents: 40,
        blobsAsInLedger: true,
        withinBound: false,
        upserted: true,
      },
      afterwards: { documents: 41, blobsAsInLedger: true, withinBound: true, errors: 0 },
    });
  });
});
