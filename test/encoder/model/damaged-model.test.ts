/**
 * Model directories with any value at any place of their JSON files, and with damaged bytes: each is refused by a
 * `ModelDirectoryError`, or it tokenises. `TEST_SEED` repeats a run.
 */
import { createHash } from 'node:crypto';
import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { installedModels } from '../../../src/encoder/model/installed-models.ts';
import { ModelDirectoryError } from '../../../src/encoder/model/model-directory.ts';
import { loadModel } from '../../../src/encoder/model/served-model.ts';
import { rounds } from '../../rounds.ts';
import { tinyModel } from '../../support/encoder/models.ts';
import { damage } from '../../support/machine/file-damage.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { announceRandom, type Random } from '../../support/running/random.ts';

const count = rounds({ short: 120, nightly: 100_000 });
const texts = ['', 'a stone house by the river', '[MASK] ß Å 水 \u0301\u0301 \ud800', 'x'.repeat(3000)];

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** Values that often break readers of sizes, ids, names and lists. */
const strange: readonly Json[] = [
  [null, true, '', '__proto__', 'x'.repeat(70_000), '\ud800', '../../etc/passwd', {}, []],
  [-1, 0, 0.5, 1e308, 2 ** 31, 2 ** 32 + 1, Number.MAX_SAFE_INTEGER, 1e-320],
  [[null], [[]], { type: 'x' }, { '': 0 }, [0, 0], ['a', 1]],
].flat();
const strangeNames = ['', '..', 'a\0b', 'model.onnx/inside', 'x'.repeat(300), '__proto__', 'absent'];

it(
  'a damaged model directory is refused, or it tokenises',
  async () => {
    const random = announceRandom('damaged models');
    const directory = path.join(await newDirectory(), 'tiny', '1');
    await installTiny(directory);
    const files = ['manifest.json', 'onnx_config.json', 'tokenizer.json', 'tokenizer_config.json'];
    const sound = new Map(
      await Promise.all(
        files.map(async (file) => [file, await readFile(path.join(directory, file))] as const),
      ),
    );
    let refused = 0;
    for (let round = 0; round < count; round += 1) {
      const file = random.pick(files);
      const { what, bytes } =
        random.next() < 0.2 ? damage(random, sound.get(file)!) : change(random, sound.get(file)!);
      await writeFile(path.join(directory, file), bytes);
      try {
        if (await isRefused(directory)) refused += 1;
      } catch (error) {
        throw new Error(`${file}: ${what}`, { cause: error });
      }
      await writeFile(path.join(directory, file), sound.get(file)!);
    }
    console.log(`damaged models: ${refused} of ${count} refused`);
    expect(refused).toBeGreaterThan(count / 10);
    expect(refused).toBeLessThan(count);
    expect(await isRefused(directory)).toBe(false);
  },
  60_000 + count * 200,
);

async function isRefused(directory: string): Promise<boolean> {
  const started = process.cpuUsage();
  let model;
  try {
    // The list of installed models reads these files too.
    await installedModels([path.resolve(directory, '../..')]);
    model = await loadModel(directory);
  } catch (error) {
    expect(error).toBeInstanceOf(ModelDirectoryError);
    return true;
  }
  for (const text of texts) {
    for (const id of model.tokenizer.encode(text)) expect(Number.isInteger(id) && id >= 0).toBe(true);
  }
  const { user, system } = process.cpuUsage(started);
  expect((user + system) / 1e6).toBeLessThan(10);
  return false;
}

/** Changes a value at any place, or removes or adds one. */
function change(random: Random, bytes: Buffer): { readonly what: string; readonly bytes: Buffer } {
  const root = { root: JSON.parse(bytes.toString()) as Json };
  const changes = Array.from({ length: random.pick([1, 1, 1, 2, 3]) }, () => {
    let at: Record<string, Json> = root;
    let key = 'root';
    const way: string[] = [];
    while (typeof at[key] === 'object' && at[key] !== null && random.next() < 0.8) {
      const inside = at[key] as Record<string, Json>;
      const keys = Object.keys(inside);
      if (keys.length === 0) break;
      [at, key] = [inside, random.pick(keys)];
      way.push(key);
    }
    const kind = random.next();
    const value = structuredClone(random.pick(strange));
    if (kind < 0.15 && !Array.isArray(at)) delete at[key];
    else if (kind < 0.3 && Array.isArray(at)) at.push(value);
    else if (kind < 0.4 && !Array.isArray(at)) at[random.pick(strangeNames)] = at[key]!;
    else at[key] = value;
    return `${way.join('.')} = ${JSON.stringify(value).slice(0, 50)} (${kind.toFixed(2)})`;
  });
  return { what: changes.join(', '), bytes: Buffer.from(JSON.stringify(root.root) ?? 'null') };
}

/** The tiny model with all optional files. */
async function installTiny(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  const files = await readdir(tinyModel);
  for (const file of files) await copyFile(path.join(tinyModel, file), path.join(directory, file));
  const sha256 = createHash('sha256')
    .update(await readFile(path.join(directory, 'model.onnx')))
    .digest('hex');
  await writeFile(
    path.join(directory, 'manifest.json'),
    JSON.stringify({
      name: 'tiny',
      version: '1',
      shares: '1',
      files: { 'model.onnx': { sha256, bytes: 10_147 } },
      variants: [{ file: 'model.onnx', provider: 'cuda', golden_tolerance: 0.1 }],
      golden: {},
    }),
  );
  await writeFile(
    path.join(directory, 'tokenizer_config.json'),
    JSON.stringify({
      tokenizer_class: 'BertTokenizer',
      model_max_length: 24,
      do_lower_case: true,
      unk_token: '[UNK]',
    }),
  );
}
