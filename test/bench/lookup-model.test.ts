import { expect, it } from 'vitest';
import path from 'node:path';
import { lookupModel, writeLookupModel } from '../../bench/host/lookup-model.ts';
import { loadModel } from '../../src/encoder/served-model.ts';
import { halfBits } from '../../src/encoder/quantize.ts';
import { defaultModel } from '../encoder/encoders.ts';
import { sessionsOfTest } from '../encoder/sessions.ts';
import { newDirectory } from '../temporary-directory.ts';

it('a model that looks its vectors up gives unit vectors, the same as int8 and as f32', async () => {
  const models = await newDirectory();
  await writeLookupModel(defaultModel, models);
  const model = await loadModel(path.join(models, lookupModel));
  const { dim } = model;
  expect({ name: model.name, version: model.version, dim }).toEqual({
    name: 'lookup',
    version: '1',
    dim: 128,
  });
  const sessions = await sessionsOfTest(model);
  const ids = Int32Array.of(7, 30_521, 7);
  const run = async (kind: 'query' | 'document') =>
    (
      await sessions.run({
        kind,
        model: 0,
        ids: ids.slice(),
        lengths: Uint32Array.of(ids.length),
        attended: Uint32Array.of(ids.length),
        kept: undefined,
        rows: ids.length,
        paddedLength: ids.length,
        paddedTexts: 1,
      })
    ).output;
  const query = await run('query');
  const document = await run('document');
  if (query.kind !== 'query' || document.kind !== 'document') throw new Error('not what was asked for');
  const rowOf = (at: number): number[] => [...query.vectors.subarray(at * dim, (at + 1) * dim)];
  expect(rowOf(0)).toEqual(rowOf(2));
  expect(rowOf(0)).not.toEqual(rowOf(1));
  for (let at = 0; at < ids.length; at++) {
    const row = rowOf(at);
    expect(Math.hypot(...row)).toBeCloseTo(1, 2);
    const scale =
      row.find((value) => value !== 0)! / document.vectors[at * dim + row.findIndex((v) => v !== 0)]!;
    const steps = [...document.vectors.subarray(at * dim, (at + 1) * dim)];
    for (const [place, value] of row.entries()) expect(value).toBeCloseTo(steps[place]! * scale, 6);
    expect(document.scales[at]).toBe(halfBits(Float32Array.of(scale))[0]);
  }
});
