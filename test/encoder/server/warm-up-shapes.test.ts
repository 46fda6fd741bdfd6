/** The batches of warm-up, and that they reach the sessions with the listed shapes. */
import { describe, expect, it } from 'vitest';
import { EncoderCore, type InferencePool } from '../../../src/encoder/scheduling/encoder-core.ts';
import { paddedTexts } from '../../../src/encoder/scheduling/batch-shape.ts';
import { loadModel } from '../../../src/encoder/model/served-model.ts';
import { parseEncoderArguments } from '../../../src/encoder/server/arguments.ts';
import { tuning } from '../../../src/encoder/server/tuning.ts';
import { checkGolden, warmUp } from '../../../src/encoder/server/warm-up.ts';
import { warmUpBatches } from '../../../src/encoder/server/warm-up-shapes.ts';
import { defaultModel, tinyModel } from '../../support/encoder/models.ts';
import { sessionsOfTest } from '../../support/encoder/sessions.ts';

const rules = {
  queryHead: [1, 2],
  documentHead: [1, 3],
  queryLead: '',
  documentLead: '',
  tail: [4],
  queryPositionsMax: 512,
  documentPositionsMax: 512,
  expansion: undefined,
  skipIds: new Set<number>(),
};
const model = { rules, windowTokensMax: 509 };
const limits = { lengthStep: 16, documentBatchTokens: 16_384, queryBatchTokens: 2048 };

/** `texts x padded length` of every batch of a kind, with special tokens. */
function shapesOf(
  kind: 'query' | 'document',
  ...given: Parameters<typeof warmUpBatches>
): ReadonlySet<string> {
  return new Set(
    warmUpBatches(...given)
      .filter((batch) => batch.kind === kind)
      .map(({ texts, tokens }) => `${texts} x ${Math.ceil(Math.min(tokens + 3, 512) / 16) * 16}`),
  );
}

describe('the batches of a warm-up', () => {
  it('are single texts of doubling lengths on a CPU', () => {
    const batches = warmUpBatches(model, 'cpu', limits);
    expect(batches.map(({ kind, texts, tokens }) => `${texts} ${kind} ${tokens}`)).toEqual(
      [8, 16, 32, 64, 128, 256]
        .flatMap((length) => [`1 query ${length}`, `1 document ${length}`])
        .concat(['1 query 512', '1 document 509']),
    );
  });

  it('are on a GPU these, several short queries, and documents: all batches of up to 288 positions, one and a full one beyond', () => {
    const queries = shapesOf('query', model, 'cuda', limits);
    expect([...queries].filter((shape) => !shape.startsWith('1 x '))).toEqual(
      [16, 32].flatMap((length) => [2, 4, 8, 16].map((texts) => `${texts} x ${length}`)),
    );
    const documents = shapesOf('document', model, 'cuda', limits);
    for (let texts = 1; texts <= 1024; texts++) {
      for (let length = 16; length <= 288; length += 16) {
        const padded = paddedTexts(texts, length, limits.documentBatchTokens);
        if (padded * length <= limits.documentBatchTokens)
          expect(documents).toContain(`${padded} x ${length}`);
      }
    }
    const longer = [...documents].filter((shape) => Number(shape.split(' x ')[1]) > 288);
    const lengths = Array.from({ length: 14 }, (_, i) => 288 + (i + 1) * 16);
    expect(new Set(longer)).toEqual(
      new Set(lengths.flatMap((length) => [`1 x ${length}`, `${Math.floor(16_384 / length)} x ${length}`])),
    );
  });

  it('hold the one length of queries that are expanded', () => {
    const expanded = {
      ...model,
      rules: { ...rules, queryPositionsMax: 48, expansion: { maskId: 9, attended: true, positions: 24 } },
    };
    const batches = warmUpBatches(expanded, 'cuda', limits);
    expect(batches.filter(({ kind, texts }) => kind === 'query' && texts > 1)).toEqual(
      [2, 4, 8, 16].map((texts) => ({ kind: 'query', texts, tokens: 21 })),
    );
  });
});

it('the check of golden texts runs each alone, as a lone query, and beside itself', async () => {
  const served = await loadModel(defaultModel);
  const pool = await sessionsOfTest(served, 2);
  const ran: boolean[] = [];
  const watched: InferencePool = {
    workers: 1,
    roomFor: (kind) => pool.roomFor(kind),
    run: async (batch) => {
      ran.push(batch.lone === true);
      return pool.run(batch);
    },
  };
  const given = parseEncoderArguments(['--listen', 'unix:/x', '--model-dir', 'x']);
  await checkGolden(new EncoderCore([served], watched, tuning(given, 'cpu')), 'cpu');
  expect(ran).toEqual((served.golden as readonly unknown[]).flatMap(() => [true, false]));
});

it('the sessions run every batch of the list as one', async () => {
  const served = await loadModel(tinyModel);
  const pool = await sessionsOfTest(served);
  const ran: string[] = [];
  const watched: InferencePool = {
    workers: 1,
    roomFor: (kind) => pool.roomFor(kind),
    run: async (batch) => {
      ran.push(`${batch.lengths.length} ${batch.kind}`);
      expect(batch.paddedTexts).toBe(batch.lengths.length);
      return pool.run(batch);
    },
  };
  const given = parseEncoderArguments(['--listen', 'unix:/x', '--model-dir', 'x', '--batch-tokens', '128']);
  const tuned = tuning(given, 'cuda');
  await warmUp(new EncoderCore([served], watched, tuned), 'cuda', tuned);
  expect(ran).toEqual(warmUpBatches(served, 'cuda', tuned).map(({ kind, texts }) => `${texts} ${kind}`));
});
