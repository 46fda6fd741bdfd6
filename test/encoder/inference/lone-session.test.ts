/** The session of several threads that runs lone queries. */
import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { describe, expect, it, onTestFinished } from 'vitest';
import { freeCores } from '../../../src/encoder/inference/free-cores.ts';
import type { SessionPool } from '../../../src/encoder/inference/session-pool.ts';
import { loadModel, type ServedModel } from '../../../src/encoder/model/served-model.ts';
import { defaultModel } from '../../support/encoder/models.ts';
import { sessionsOfTest } from '../../support/encoder/sessions.ts';
import { queryOf } from '../../support/encoder/unquantised.ts';
import { eventually } from '../../support/running/eventually.ts';
import { repositoryRoot } from '../../support/running/launch.ts';

const models = [
  'models/minilm-l6-maxsim/1',
  'models/bge-small-maxsim/1',
  // These have f32 weights.
  'test/fixtures/exports/pylate/modernbert',
  'test/fixtures/exports/pylate/xlm-roberta',
  'test/fixtures/exports/multi-vector/bert-min',
];
const texts = [
  'late',
  'a query of a few words',
  'interaction '.repeat(20),
  'tokens, and more tokens; '.repeat(15),
];

/** Runs a text as often as given, in one batch. Returns the rows of the first. */
async function rowsOf(
  pool: SessionPool,
  model: ServedModel,
  text: string,
  { lone, times = 1 }: { readonly lone: boolean; readonly times?: number },
): Promise<Float32Array> {
  const { ids, attended } = queryOf(model, text);
  const { output } = await pool.run({
    kind: 'query',
    modelIndex: 0,
    lone,
    ids: Int32Array.from({ length: ids.length * times }, (_, i) => ids[i % ids.length]!),
    lengths: new Uint32Array(times).fill(ids.length),
    attended: new Uint32Array(times).fill(attended),
    kept: undefined,
    rows: ids.length * times,
    paddedLength: ids.length,
    paddedTexts: times,
  });
  return output.vectors.slice(0, ids.length * model.dim) as Float32Array;
}

describe('a lone query', () => {
  it.each(models)('%s: has the same vectors, to the bit, as in a batch on another session', async (name) => {
    const model = await loadModel(path.join(repositoryRoot, name));
    const pool = await sessionsOfTest(model, 2);
    for (const text of texts) {
      const alone = await rowsOf(pool, model, text, { lone: true });
      expect(alone.some((value) => value !== 0)).toBe(true);
      expect(await rowsOf(pool, model, text, { lone: false })).toEqual(alone);
      expect(await rowsOf(pool, model, text, { lone: false, times: 3 })).toEqual(alone);
    }
  });

  it.runIf(process.platform === 'linux')(
    'runs in several threads while so many cores are free, and no other query does',
    async () => {
      const before = new Set(threads());
      const model = await loadModel(defaultModel);
      let free = 2;
      const pool = await sessionsOfTest(model, 2, () => free);
      const busyWhile = async (lone: boolean): Promise<number> => {
        const started = new Map(threads().map((thread) => [thread, runNs(thread)]));
        for (let run = 0; run < 20; run++) await rowsOf(pool, model, texts[3]!, { lone });
        const isBusy = (thread: string) => runNs(thread) - (started.get(thread) ?? 0) > 5e6;
        return threads().filter((thread) => !before.has(thread) && isBusy(thread)).length;
      };
      // Threads of the runtime's start and of other work end meanwhile.
      await expect.poll(() => busyWhile(false)).toBe(1);
      await expect.poll(() => busyWhile(true)).toBe(2);
      free = 1;
      await expect.poll(() => busyWhile(true)).toBe(1);
    },
  );
});

it.runIf(process.platform === 'linux')('the free cores are fewer while other threads run', async () => {
  const idle = freeCores();
  expect(idle).toBeLessThanOrEqual(availableParallelism());
  const spinner = new Worker('for (;;);', { eval: true });
  onTestFinished(async () => void (await spinner.terminate()));
  await eventually(() => freeCores() < availableParallelism());
});

function threads(): readonly string[] {
  return readdirSync('/proc/self/task');
}

/** Nanoseconds that a thread of this process has run. */
function runNs(thread: string): number {
  return Number(readFileSync(`/proc/self/task/${thread}/schedstat`, 'utf8').split(' ')[0]);
}
