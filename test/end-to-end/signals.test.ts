/**
 * SIGTERM at many moments of a server's first minute, while its threads fall idle: server and encoder end with exit code 0, and
 * no runtime ends by `terminate` on the way. `test/app/early-signals.test.ts` has the moments before.
 */
import { afterAll, describe, expect, test } from 'vitest';

import { rounds } from '../rounds.ts';
import { eventually, pause, within } from '../support/running/eventually.ts';
import { encodersOf, isAlive } from '../support/running/processes.ts';
import { killLaunched, launchServer, makeScratch, type Scratch } from '../support/running/launch.ts';
import { createTenant } from '../support/commands/command-line.ts';
import { connect } from '../support/running/client.ts';

/** Seconds after the ready line; every second of the first minute in the nightly rounds. */
const seconds = rounds({ short: 3, nightly: 61 });
const moments = Array.from({ length: seconds }, (_, i) => (seconds > 3 ? i : [0, 1, 5][i]!));

/** A runtime prints one of these when it crashes instead of ending as asked. */
const fatal = /terminate called|Napi::Error|core dumped|FATAL ERROR|Segmentation fault/;

describe('SIGTERM', () => {
  const scratches: Scratch[] = [];
  afterAll(async () => {
    killLaunched();
    await Promise.all(scratches.map(async (scratch) => scratch.remove()));
  });

  async function launch() {
    const scratch = await makeScratch();
    scratches.push(scratch);
    return launchServer({ scratch });
  }

  /** Both are gone, and neither fell. */
  async function expectEnd(
    launched: Awaited<ReturnType<typeof launch>>,
    encoders: readonly { readonly pid: number }[],
  ) {
    launched.signal('SIGTERM');
    const exit = await within('the end of the server', launched.exited);
    await eventually(async () =>
      (await Promise.all(encoders.map(({ pid }) => isAlive(pid)))).includes(true) ? undefined : true,
    );
    const { stderr } = launched.output();
    expect(stderr).not.toMatch(fatal);
    // Encoders that were killed, or that ended in another way, say so in the log.
    expect(stderr).not.toMatch(/encoder exited with/);
    return exit;
  }

  // Side by side: most of their time is waiting.
  test.concurrent.each(moments)('%i s after ready ends server and encoder cleanly', async (after) => {
    const launched = await launch();
    const { url } = await within('the start of the server', launched.ready);
    const encoders = await encodersOf(launched.pid);
    expect(encoders).toHaveLength(1);
    if (after % 2 === 1) {
      // Threads that have worked fall idle in another way.
      const { key } = await createTenant({ ...launched, url } as never);
      const scored = await connect(url, key).score({
        query: 'a wave',
        documents: [{ doc_id: 'one', text: 'light is a wave' }],
      });
      expect(scored.status).toBe(200);
    }
    await pause(after * 1000);
    expect(await expectEnd(launched, encoders)).toEqual({ code: 0, signal: null });
  });
});
