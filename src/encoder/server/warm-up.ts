/**
 * Runs between loading a model and SERVING. Warm-up runs batches of every shape, so that no request pays for work of the first run.
 * The golden check compares known texts with their known ids and, within a tolerance, with their known rows. So a wrong file or a
 * miscompiled kernel never answers.
 */
import { z } from 'zod';
import { documentSequence, querySequence } from '../model/colbert-rules.ts';
import type { EncoderCore } from '../scheduling/encoder-core.ts';
import type { SchedulerOptions } from '../scheduling/scheduler.ts';
import type { ServedModel } from '../model/served-model.ts';
import { warmUpBatches } from './warm-up-shapes.ts';

const goldenSchema = z.array(
  z.looseObject({
    text: z.string(),
    kind: z.enum(['query', 'document']),
    input_ids: z.array(z.number().int()),
    /** Leading values of some rows of `output`, before any weight. */
    rows: z.array(z.looseObject({ row: z.number().int().nonnegative(), values: z.array(z.number()) })),
    token_weight: z.array(z.number()).optional(),
    tolerance: z.number().positive(),
  }),
);

/** Runs the batches of `warmUpBatches` in each graph, one after the other. */
export async function warmUp(
  core: EncoderCore,
  provider: 'cpu' | 'cuda',
  limits: SchedulerOptions,
): Promise<void> {
  const graphs = new Set<string>();
  for (const [index, model] of core.models.entries()) {
    const { file } = model.session.graphs[provider];
    if (graphs.has(file)) continue;
    graphs.add(file);
    const { rules, tokenizer } = model;
    const filler = tokenizer.encode('a')[0] ?? 0;
    for (const { kind, texts, tokens } of warmUpBatches(model, provider, limits)) {
      const content = new Int32Array(tokens).fill(filler);
      const sequence = kind === 'query' ? querySequence(rules, content) : documentSequence(rules, content);
      const batch = Array.from({ length: texts }, () => sequence);
      await core.runTogether(index, kind, batch).catch((error: Error) => {
        // Some graphs run short texts only. The message says which text failed.
        const text = `a ${kind} of ${sequence.ids.length} tokens`;
        const words = `${model.name} version ${model.version}, ${text}: ${error.message}`;
        throw new Error(words, { cause: error });
      });
    }
  }
}

/** Rejects when a model gives other ids or rows for its golden texts. */
export async function checkGolden(core: EncoderCore, provider: 'cpu' | 'cuda'): Promise<void> {
  for (const [index, model] of core.models.entries()) {
    if (model.golden === undefined) continue;
    const { goldenTolerance } = model.session.graphs[provider];
    for (const golden of goldenSchema.parse(model.golden)) {
      await checkOne(core, index, model, {
        ...golden,
        tolerance: Math.max(golden.tolerance, goldenTolerance ?? 0),
      });
    }
  }
}

async function checkOne(
  core: EncoderCore,
  index: number,
  model: ServedModel,
  golden: z.output<typeof goldenSchema>[number],
): Promise<void> {
  const where = `${model.name} version ${model.version}, golden text of ${golden.input_ids.length} tokens`;
  const { rules, tokenizer } = model;
  const sequence =
    golden.kind === 'query'
      ? querySequence(rules, tokenizer.encode(rules.queryLead + golden.text))
      : documentSequence(rules, tokenizer.encode(rules.documentLead + golden.text));
  if (
    sequence.ids.length !== golden.input_ids.length ||
    golden.input_ids.some((id, i) => sequence.ids[i] !== id)
  ) {
    throw new Error(`${where}: the tokenizer gives other token ids`);
  }
  // Documents are checked as queries, because only those give f32 rows of every position.
  const query = { ...sequence, kept: undefined, rows: sequence.ids.length };
  // A single text runs in the session for lone queries, two of them in another.
  const [alone] = await core.runQuerySequences(index, [query]);
  const [together] = await core.runQuerySequences(index, [query, query]);
  for (const { vectors } of [alone!, together!]) {
    for (const { row, values } of golden.rows) {
      const weight = golden.token_weight?.[row] ?? 1;
      for (const [d, value] of values.entries()) {
        const actual = vectors[row * model.dim + d]!;
        if (!(Math.abs(actual - value * weight) <= golden.tolerance)) {
          throw new Error(`${where}: row ${row} value ${d} is ${actual}, not ${value * weight}`);
        }
      }
    }
  }
}
