/** The GPU benchmark, dry: on the CPU graph it runs end to end and finds nothing to complain of. */
import { Tensor } from 'onnxruntime-node';
import { describe, expect, it } from 'vitest';
import { outputsOf, runGpuBench, smallestNearBest } from '../../bench/gpu/bench.ts';
import { renderGpu } from '../../bench/gpu/command.ts';
import { cudaProblem } from '../../src/encoder/cuda-library.ts';
import { loadModel } from '../../src/encoder/served-model.ts';
import { tinyModel } from '../encoder/encoders.ts';

const options = {
  beir: undefined,
  rounds: 1,
  batchTokens: [272],
  environment: {},
  command: 'test',
  onProgress: () => undefined,
};

describe('the GPU benchmark', () => {
  it('compares a device with the CPU and measures it with each set of outputs', async () => {
    const report = await runGpuBench({ ...options, device: { provider: 'cpu', index: 0, threads: 2 } });
    expect(report.nodes_elsewhere).toBeNull();
    expect(report.agreement_with_cpu_graph.minimum_cosine).toBeGreaterThan(0.9999);
    expect(report.alone_and_in_batch).toMatchObject({ differing_share: 0, steps_max: 0 });
    expect(report.rows.map(({ outputs }) => outputs)).toEqual(['int8', 'f32', 'weights only']);
    for (const row of report.rows) expect(row.tokens_per_second).toBeGreaterThan(0);
    expect(renderGpu(report)).toContain('nodes on another device: none');
    expect(renderGpu(report)).toContain('MAXSIMD_BATCH_TOKENS=272 is');
  }, 60_000);

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
    const { session } = await loadModel(tinyModel);
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

  it('refuses a GPU that is not there, and says why', async () => {
    const problem = cudaProblem();
    const run = runGpuBench({ ...options, device: { provider: 'cuda', index: 0, threads: 2 } });
    if (problem === undefined) expect((await run).rows).toHaveLength(3);
    else await expect(run).rejects.toThrow(problem);
  }, 60_000);
});
