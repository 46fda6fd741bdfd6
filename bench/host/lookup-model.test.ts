import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { loadModel } from '../../src/encoder/model/served-model.ts';
import { root } from '../lib/environment.ts';
import { feedsOf, openSession, settingsFor } from '../lib/model/onnxruntime-session.ts';
import { lookupModel, writeLookupModel } from './lookup-model.ts';

it('a model that looks its vectors up gives unit vectors, the same as int8 and as f32', async () => {
  const models = mkdtempSync(path.join(tmpdir(), 'maxsimd-test-'));
  onTestFinished(() => rmSync(models, { recursive: true, force: true }));
  await writeLookupModel(path.join(root, 'models/minilm-l6-maxsim/1'), models);
  const model = await loadModel(path.join(models, lookupModel));
  const { name, version, dim, session: names } = model;
  expect({ name, version, dim }).toEqual({ name: 'lookup', version: '1', dim: 128 });
  const session = await openSession(settingsFor(model, { provider: 'cpu', index: 0, threads: 1 }));
  const ids = Int32Array.of(7, 30_521, 7);
  const feeds = feedsOf({ ids, texts: 1, length: ids.length }, names.usesTokenTypeIds);
  const fetched = await session.run(feeds, ['output', names.int8Output!, names.scaleOutput!]);
  const vectors = fetched['output']!.data as Float32Array;
  const steps = fetched[names.int8Output!]!.data as Int8Array;
  const scales = fetched[names.scaleOutput!]!.data as Float32Array;
  const rowOf = (at: number): Float32Array => vectors.subarray(at * dim, (at + 1) * dim);
  expect(rowOf(0)).toEqual(rowOf(2));
  expect(rowOf(0)).not.toEqual(rowOf(1));
  for (let at = 0; at < ids.length; at++) {
    expect(Math.hypot(...rowOf(at))).toBeCloseTo(1, 2);
    for (const [place, value] of rowOf(at).entries()) {
      expect(value).toBeCloseTo(steps[at * dim + place]! * scales[at]!, 6);
    }
  }
});
