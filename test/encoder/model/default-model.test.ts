/** The shipped models in a real encoder: independence of the batch, bounds, the worst legal request. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EncoderProbe } from '../../../src/encoder/supervision/encoder-probe.ts';
import type { EncodedDocument } from '../../../src/encoder/protocol/contract.ts';
import { rangeFields } from '../../../src/encoder/protocol/row-places.ts';
import { rowBytes } from '../../../src/contracts/row-shape.ts';
import { halfValues } from '../../../src/encoder/inference/halves.ts';
import { callOptions, encodeAll, type Encoders, startEncoders } from '../../support/encoder/encoders.ts';
import { eventually, hangMs } from '../../support/running/eventually.ts';
import { defaultModel, minilmModel, plainModel } from '../../support/encoder/models.ts';
import { componentsOf } from '../../../bench/lib/vectors.ts';

const chunking = { maxTokens: 256, overlapTokens: 32, minimumChunkTokens: 16 };
const prose = readFileSync(`${import.meta.dirname}/../../../proto/encoder.proto`, 'utf8').replaceAll(
  /[/\n;{}=]+/g,
  ' ',
);
const sentences = prose.split('. ').map((sentence) => sentence.trim());

const models = [
  {
    directory: defaultModel,
    served: {
      name: 'bge-small-maxsim',
      version: '2',
      dim: 384,
      rowBits: 2,
      poolFactor: 3,
      windowTokensMax: 510,
    },
  },
  {
    directory: plainModel,
    served: {
      name: 'bge-small-maxsim',
      version: '1',
      dim: 384,
      rowBits: 2,
      poolFactor: 1,
      windowTokensMax: 510,
    },
  },
  {
    directory: minilmModel,
    served: {
      name: 'minilm-l6-maxsim',
      version: '1',
      dim: 128,
      rowBits: 8,
      poolFactor: 1,
      windowTokensMax: 510,
    },
  },
];

describe.each(models)('$served.name version $served.version', ({ directory, served }) => {
  let encoders: Encoders;
  let probe: EncoderProbe;
  beforeAll(async () => {
    encoders = await startEncoders({ modelDirectories: [directory], threads: 0 });
    probe = new EncoderProbe(encoders.supervisor.addresses[0]!);
  });
  afterAll(async () => {
    probe.close();
    await encoders.close();
  });

  it('gives a text the same vectors alone and in any batch, up to one step in 1% of components', async () => {
    const texts = [...sentences, ...sentences.map((sentence) => sentence.slice(0, 40)), prose];
    const together = await encodeAll(encoders.pool, texts, { chunking });
    const step = served.rowBits === 8 ? 1 : 2;
    let components = 0;
    let different = 0;
    for (const [i, text] of texts.entries()) {
      const [alone] = await encodeAll(encoders.pool, [text], { chunking });
      expect(alone!.chunkRows).toEqual(together[i]!.chunkRows);
      const values = halfValues(alone!.scales);
      const others = halfValues(together[i]!.scales);
      for (const [row, scale] of values.entries())
        expect(Math.abs(others[row]! - scale)).toBeLessThanOrEqual(scale * 0.01);
      for (const row of values.keys()) {
        const beside = componentsOf(together[i]!.vectors, served, row);
        for (const [d, value] of componentsOf(alone!.vectors, served, row).entries()) {
          const off = Math.abs(value - beside[d]!);
          expect(off).toBeLessThanOrEqual(step);
          if (off > 0) different++;
          components++;
        }
      }
    }
    expect(different / components).toBeLessThanOrEqual(0.01);
  });

  it('gives the passage of a chunk the vectors of the chunk, to the bit, where no word is cut', async () => {
    const [document] = await encodeAll(encoders.pool, [prose], {
      chunking: { maxTokens: 40, overlapTokens: 8, minimumChunkTokens: 8 },
    });
    const { chunkRows, chunkRanges, vectors, scales } = document!;
    const points = Array.from(prose);
    const bytes = rowBytes(served);
    let compared = 0;
    let first = 0;
    for (const [chunk, rows] of chunkRows.entries()) {
      const [start, end] = chunkRanges!.subarray(chunk * rangeFields);
      const [alone] = await encodeAll(encoders.pool, [points.slice(start, end).join('')], { chunking });
      if (alone!.scales.length === rows) {
        compared += 1;
        expect(alone!.vectors).toEqual(vectors.subarray(first * bytes, (first + rows) * bytes));
        expect(alone!.scales).toEqual(scales.subarray(first, first + rows));
      }
      first += rows;
    }
    expect(compared).toBeGreaterThan(chunkRows.length / 3);
  });

  it('gives a query the same vectors alone and among others', async () => {
    const query = async (text: string) => encoders.pool.encodeQuery(text, callOptions(encoders.pool));
    const alone = await query(sentences[3]!);
    const [among] = await Promise.all([query(sentences[3]!), ...sentences.slice(0, 20).map(query)]);
    expect(among?.rows).toBe(alone.rows);
    for (const [i, value] of alone.vectors.entries()) expect(among?.vectors[i]).toBeCloseTo(value, 3);
  });

  it('is served with its size and its window', () => {
    expect(encoders.pool.models()).toEqual([served]);
  });

  it('truncates a query at its positions and still counts all of it', async () => {
    const query = await encoders.pool.encodeQuery('word '.repeat(1600), callOptions(encoders.pool));
    expect(query.inputTokens).toBe(1600);
    expect(query.rows).toBe(512);
    const empty = await encoders.pool.encodeQuery('\u0000', callOptions(encoders.pool));
    expect([empty.inputTokens, empty.rows]).toEqual([0, 2]);
  });

  it('gives documents and queries that match: the right text scores best', async () => {
    const texts = [
      'The cat sleeps on the sofa.',
      'Interest rates were raised by the central bank.',
      'Bread is baked from flour and yeast.',
    ];
    const documents = await encodeAll(encoders.pool, texts, { chunking });
    const best = async (query: string): Promise<number> => {
      const scores = await Promise.all(documents.map(async (document) => maxSim(query, document)));
      return scores.indexOf(Math.max(...scores));
    };
    expect(await best('where does the pet rest?')).toBe(0);
    expect(await best('monetary policy of banks')).toBe(1);
    expect(await best('how to make a loaf')).toBe(2);
  });

  it('gives a text that is its own query a product of about 1 for each token', async () => {
    const text = sentences.find((sentence) => sentence.length > 60)!;
    const [document] = await encodeAll(encoders.pool, [text], { chunking });
    const { vectors, rows } = await encoders.pool.encodeQuery(text, callOptions(encoders.pool));
    // A query row is as long as its token's weight.
    const lengths = Array.from({ length: rows }, (_, q) =>
      Math.hypot(...vectors.subarray(q * served.dim, (q + 1) * served.dim)),
    );
    const wanted = lengths.reduce((sum, length) => sum + length, 0);
    // A pooled row lies between the vectors that it stands for.
    const isPooled = document!.scales.length < rows;
    expect(Math.abs((await maxSim(text, document!)) / wanted - 1)).toBeLessThan(isPooled ? 0.1 : 0.02);
  });

  it('refuses the worst legal upsert early, in bounded memory, and answers queries meanwhile', async () => {
    const worst = Array.from({ length: 50 }, () => '.'.repeat(100 * 1024));
    const before = (await probe.statistics(hangMs))!.residentBytes;
    let peak = 0;
    const sample = async (): Promise<void> => {
      const statistics = await probe.statistics(hangMs);
      peak = Math.max(peak, statistics?.residentBytes ?? 0);
    };
    const sampling = setInterval(() => void sample(), 50);
    const slowest = { ms: 0 };
    const asking = { on: true };
    const queries = (async () => {
      while (asking.on) {
        const startedAt = performance.now();
        await encoders.pool.encodeQuery('a short query', callOptions(encoders.pool));
        slowest.ms = Math.max(slowest.ms, performance.now() - startedAt);
      }
    })();
    const upsert = encodeAll(encoders.pool, worst, { chunking, deadlineMs: Date.now() + 60_000 });
    await expect(upsert).rejects.toMatchObject({ code: 'service_unavailable' });
    asking.on = false;
    clearInterval(sampling);
    await queries;
    expect(peak - before).toBeLessThan(400 << 20);
    expect(slowest.ms).toBeLessThan(30_000);
    await eventually(async () => (await probe.statistics(hangMs))?.queuedTokens === 0);
  });

  async function maxSim(text: string, document: EncodedDocument): Promise<number> {
    const query = await encoders.pool.encodeQuery(text, callOptions(encoders.pool));
    const scales = halfValues(document.scales);
    let score = 0;
    for (let q = 0; q < query.rows; q++) {
      let best = -Infinity;
      for (const [row, scale] of scales.entries()) {
        let sum = 0;
        for (const [d, value] of componentsOf(document.vectors, served, row).entries())
          sum += query.vectors[q * served.dim + d]! * value;
        best = Math.max(best, sum * scale + query.offsets[q]!);
      }
      score += best;
    }
    return score;
  }
});
