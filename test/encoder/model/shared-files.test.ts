/** A model version without a graph of its own: it is read from another version, checked, and served in the same session. */
import { createHash } from 'node:crypto';
import { appendFileSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { installedModels, withSameGraph } from '../../../src/encoder/model/installed-models.ts';
import { loadModel } from '../../../src/encoder/model/served-model.ts';
import { EncoderProbe } from '../../../src/encoder/supervision/encoder-probe.ts';
import { encodeAll, encodersOfTest } from '../../support/encoder/encoders.ts';
import { defaultModel, plainModel, tinyModel } from '../../support/encoder/models.ts';
import { hangMs } from '../../support/running/eventually.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';

const configFile = 'onnx_config.json';

function checksum(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex');
}

/** Version 1 with all files, and version 2 with a configuration of its own: pooled rows. */
async function twoVersions(shares: unknown = 1) {
  const folder = await newDirectory();
  const [first, second] = ['1', '2'].map((version) => path.join(folder, 'tiny', version)) as [string, string];
  cpSync(tinyModel, first, { recursive: true });
  mkdirSync(second);
  const config = JSON.parse(readFileSync(path.join(first, configFile), 'utf8')) as { maxsimd?: object };
  const pooled = { ...config, maxsimd: { ...config.maxsimd, pool_factor: 2 } };
  writeFileSync(path.join(second, configFile), JSON.stringify(pooled));
  const files = Object.fromEntries(
    readdirSync(first).map((name) => [name, checksum(path.join(name === configFile ? second : first, name))]),
  );
  const manifest = { name: 'tiny', version: '2', shares, files };
  writeFileSync(path.join(second, 'manifest.json'), JSON.stringify(manifest));
  return { folder, first, second };
}

describe('a version that shares the files of another one', () => {
  it('is served beside it, with rows of its own', async () => {
    const { folder, first, second } = await twoVersions();
    const { models } = await installedModels([folder]);
    expect(models.map(({ version, graphVersion }) => [version, graphVersion])).toEqual([
      ['1', '1'],
      ['2', '1'],
    ]);
    expect(withSameGraph(models, models[1]!)).toEqual(models);
    const { pool } = await encodersOfTest({ modelDirectories: [second, first] });
    // A node of the release before takes the first one, and knows no later version.
    expect(pool.models().map(({ version }) => version)).toEqual(['1', '2']);
    const rowsOf = async (version: string): Promise<number> => {
      const model = { name: 'tiny', version };
      const [document] = await encodeAll(pool, ['a stone house by the river'], { model });
      return document!.chunkRows[0]!;
    };
    expect(await rowsOf('2')).toBe(Math.ceil((await rowsOf('1')) / 2));
  });

  it('is left out with the reason in the log if it is damaged, and the other one is served', async () => {
    const { first, second } = await twoVersions();
    appendFileSync(path.join(second, configFile), ' ');
    const { pool, logs } = await encodersOfTest({
      modelDirectories: [first],
      optionalModelDirectories: [second],
    });
    expect(pool.models()).toMatchObject([{ name: 'tiny', version: '1' }]);
    expect(logs.filter((line) => line.includes('is left out'))).toEqual([
      expect.stringMatching(/onnx_config\.json has sha256/),
    ]);
    await expect(encodersOfTest({ modelDirectories: [first, second] })).rejects.toThrow('has sha256');
  });

  it('runs in the session of the other one, and so takes no memory for a graph', async () => {
    const bytesOf = async (...modelDirectories: string[]): Promise<number> => {
      const { supervisor } = await encodersOfTest({ modelDirectories });
      const probe = new EncoderProbe(supervisor.addresses[0]!);
      onTestFinished(() => probe.close());
      await supervisor.ready;
      return (await probe.statistics(hangMs))!.residentBytes;
    };
    const [alone, both] = [await bytesOf(plainModel), await bytesOf(plainModel, defaultModel)];
    expect(both / alone).toBeLessThan(1.2);
  });

  it('is refused if a shared file is another one, or is missing', async () => {
    const { first, second } = await twoVersions();
    await expect(loadModel(second)).resolves.toMatchObject({ version: '2', poolFactor: 2 });
    const graph = path.join(first, 'model.onnx');
    appendFileSync(graph, 'more');
    await expect(loadModel(second)).rejects.toThrow('model.onnx has sha256');
    rmSync(graph);
    await expect(loadModel(second)).rejects.toThrow('model.onnx');
  });

  it.each(['..', '.', '../1', 'a/b', '', '1\0', {}, -1.5])('cannot share the files of %j', async (shares) => {
    const { second } = await twoVersions(shares);
    await expect(loadModel(second)).rejects.toThrow('shares');
  });
});
