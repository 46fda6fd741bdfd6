/** `kill -9` while files of columns are made. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { watch } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, it } from 'vitest';
import { rounds } from '../../rounds.ts';
import { announceRandom } from '../../support/running/random.ts';
import { documentAt, openHost, openStage } from '../../support/stages/index-stage.ts';

const documents = 24;
const fields = 20;
const settings = { segmentTokenVectorsMax: 8, codesTokenVectorsMin: 1, sealedSegmentsMax: 100 };

const idOf = (place: number): string => `d${String(place).padStart(2, '0')}`;
const valueOf = (place: number, field: number): number => (place * 7 + field * 5) % documents;

it('a process that is killed while it writes columns leaves none that is wrong, and no remains', async () => {
  const random = announceRandom('kill -9 while columns are made');
  const directory = await mkdtemp(path.join(tmpdir(), 'maxsimd-columns-'));
  try {
    let known;
    {
      await using host = await openHost(directory);
      await using stage = await openStage(host, settings);
      for (let place = 0; place < documents; place += 1) {
        const values = Array.from({ length: fields }, (_, field) => [`f${field}`, valueOf(place, field)]);
        const metadataText = JSON.stringify(Object.fromEntries(values));
        await stage.upsert([{ ...documentAt(idOf(place), place), metadataText }]);
      }
      await stage.index().maintain();
      known = { tenantId: stage.tenantId, indexId: stage.indexId };
    }
    const folder = path.join(directory, 'segments', known.indexId);
    const columns = async (): Promise<readonly string[]> =>
      (await readdir(folder)).filter((name) => name.includes('.columns-'));
    let struck = 0;
    for (let round = 0; round < rounds({ short: 4, nightly: 200 }); round += 1) {
      for (const name of await columns()) await rm(path.join(folder, name));
      struck += Number(
        await killAmidWrites(folder, random.integer(1, fields * 6), [
          directory,
          known.tenantId,
          known.indexId,
          String(fields),
        ]),
      );
      await using host = await openHost(directory);
      await using stage = await openStage(host, settings, known);
      expect((await columns()).filter((name) => name.endsWith('.tmp'))).toEqual([]);
      for (let field = 0; field < fields; field += 1) {
        const least = random.integer(0, documents);
        const wanted = Array.from({ length: documents }, (_, place) => place)
          .filter((place) => valueOf(place, field) >= least)
          .map(idOf);
        expect([field, least, await stage.matching(`{"f${field}":{"gte":${least}}}`)]).toEqual([
          field,
          least,
          wanted,
        ]);
      }
      expect([stage.errors, stage.corrupt]).toEqual([[], []]);
    }
    console.log(`killed amid writes: ${struck}`);
    expect(struck).toBeGreaterThan(0);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

/** Kills a process that writes columns after some changes of the folder. Resolves to whether it was killed in time. */
async function killAmidWrites(folder: string, changes: number, args: readonly string[]): Promise<boolean> {
  const script = path.join(import.meta.dirname, 'columns-process.ts');
  let left = changes;
  const watcher = watch(folder, (_event, name) => {
    if (name?.includes('.columns-') === true && (left -= 1) === 0) child.kill('SIGKILL');
  });
  const child = spawn(process.execPath, [script, ...args], { stdio: ['ignore', 'inherit', 'inherit'] });
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
  watcher.close();
  expect([code, signal]).toSatisfy(([ended, by]) => ended === 0 || by === 'SIGKILL');
  return signal === 'SIGKILL';
}
