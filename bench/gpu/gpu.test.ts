/** The calculations behind the figures of the GPU benchmark, and the scripts of a GPU host. */
import { Tensor } from 'onnxruntime-node';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadModel } from '../../src/encoder/model/served-model.ts';
import { root } from '../lib/environment.ts';
import { program } from '../program.ts';
import { outputsOf, smallestNearBest } from './bench.ts';

const textOf = (file: string): string => readFileSync(path.join(root, file), 'utf8');

describe('the GPU benchmark', () => {
  it.each([
    [{ 64: 50, 128: 80, 256: 98, 512: 100, 1024: 99 }, 256],
    [{ 64: 50, 128: 80, 256: 96.9, 512: 100, 1024: 99 }, 512],
    [{ 64: 97, 128: 100 }, 64],
  ])('of %o chooses the smallest batch within 3%% of the best rate', (table, expected) => {
    const rates = Object.entries(table).map(([tokens, rate]) => ({
      batchTokens: Number(tokens),
      tokensPerSecond: rate,
    }));
    expect(smallestNearBest(rates)).toBe(expected);
  });

  it.each([true, false])('feeds token types where the model takes them: %s', async (usesTokenTypeIds) => {
    const { session } = await loadModel(path.join(root, 'test/fixtures/colbert-tiny/1'));
    const given: string[][] = [];
    // No model at hand takes them.
    const recorder = {
      run: async (feeds: object) => {
        given.push(Object.keys(feeds));
        return Promise.resolve({ output: new Tensor('float32', [1], [1, 1, 1]) });
      },
    };
    await outputsOf(recorder, { session: { ...session, usesTokenTypeIds } }, [Int32Array.of(2, 3)]);
    const common = ['input_ids', 'attention_mask'];
    expect(given).toEqual([usesTokenTypeIds ? [...common, 'token_type_ids'] : common]);
  });
});

describe('the scripts of a GPU host', () => {
  const scripts = [
    'bench/gpu/all.sh',
    'bench/gpu/pack.sh',
    'bench/gpu/maxsim/build.sh',
    'bench/gpu/maxsim/measure.sh',
  ];

  it.each(scripts)('%s names only files, npm scripts and options that exist', (file) => {
    const text = textOf(file);
    const here = path.dirname(file);
    const places = [...text.matchAll(/(?<![\w/.-])(?:bench|docs|native|src)\/[\w./-]*[\w-]/g)].map(
      ([place]) => place,
    );
    const besides = [...text.matchAll(/\$here\/([\w-]+\.\w+)/g)].map(([, name = '']) =>
      path.join(here, name),
    );
    for (const place of [...places, ...besides]) expect(existsSync(path.join(root, place)), place).toBe(true);
    const { scripts: known } = JSON.parse(textOf('package.json')) as { readonly scripts: object };
    for (const [, name] of text.matchAll(/npm run (?:--silent )?([\w:]+)/g))
      expect(Object.keys(known)).toContain(name);
    if (file !== 'bench/gpu/all.sh') return;
    const options = new Set(program.commands.flatMap(({ options: of }) => of.map(({ long }) => long)));
    const used = text.replaceAll(/npm run.*/g, '').match(/(?<=[" ])--[a-z][\w-]*/g)!;
    expect(used.filter((option) => !options.has(option))).toEqual([]);
  });
});

describe('the parts of a GPU host', () => {
  const parts = [
    ...textOf('bench/gpu/all.sh').matchAll(
      /(?:^|[ |] )(?:[A-Z_]+=\S+ )?(?:part|bench|capacity) ([a-z][\w-]*) /gm,
    ),
  ].map(([, part]) => part);

  it('are those of the page, in which each has a goal', () => {
    const documented = [
      ...textOf('bench/gpu/README.md').matchAll(/^\| [^|]*\| `([a-z][\w-]*)` \| [^|]+\| \d* ?\|$/gm),
    ].map(([, part]) => part);
    expect(parts.length).toBeGreaterThan(10);
    expect(new Set(documented)).toEqual(new Set(parts));
  });
});
