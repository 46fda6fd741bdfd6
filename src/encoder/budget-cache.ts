/**
 * Budgets that a sweep found, kept in one JSON file: { "<key>": { "batch_tokens", "tokens_per_second" } }. The key holds
 * all that a rate depends on, so that a moved disk or a new runtime finds nothing and sweeps again. The file may be lost
 * at any time: it costs a sweep.
 */
import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import path from 'node:path';
import { z } from 'zod';
import type { EncoderArguments } from './arguments.ts';
import type { BudgetRate } from './budget-sweep.ts';
import { runtimeVersion } from './cuda-library.ts';
import type { ServedModel } from './served-model.ts';

const fileSchema = z.record(
  z.string(),
  z.object({ batch_tokens: z.number().int().positive(), tokens_per_second: z.number().positive() }),
);

export interface BudgetConditions {
  readonly models: readonly ServedModel[];
  readonly options: Pick<EncoderArguments, 'device' | 'threads'>;
  readonly provider: 'cpu' | 'cuda';
  readonly workers: number;
}

/** Where a budget is kept; an empty file name keeps nothing. */
export interface BudgetMemory {
  readonly file: string;
  readonly key: string;
}

export function budgetKey(conditions: BudgetConditions): string {
  const { models, options, provider, workers } = conditions;
  const graphs = models.map(({ name, version, session }) => {
    return `${name}/${version} ${session.graphs[provider].sha256.slice(0, 16)}`;
  });
  const device = provider === 'cuda' ? [`cuda:${options.device}`, ...gpuNames()] : ['cpu'];
  const processor = [cpus()[0]?.model.trim() ?? 'unknown', `${workers} workers, ${options.threads} threads`];
  return [...graphs, ...device, ...processor, `onnxruntime ${runtimeVersion()}`].join(' | ');
}

export function readBudget({ file, key }: BudgetMemory): BudgetRate | undefined {
  const found = readAll(file)[key];
  return found && { batchTokens: found.batch_tokens, tokensPerSecond: found.tokens_per_second };
}

/** Other keys stay, but for those that another process writes in the same instant. */
export function writeBudget({ file, key }: BudgetMemory, rate: BudgetRate): void {
  const entry = {
    batch_tokens: rate.batchTokens,
    tokens_per_second: Math.max(1, Math.round(rate.tokensPerSecond)),
  };
  const partial = `${file}.${process.pid}.partial`;
  writeFileSync(partial, `${JSON.stringify({ ...readAll(file), [key]: entry }, null, 2)}\n`, { mode: 0o600 });
  renameSync(partial, file);
}

function readAll(file: string): z.output<typeof fileSchema> {
  try {
    return fileSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    // Absent, cut off or of another version: as good as none.
    return {};
  }
}

/** As the driver tells them, without asking it for a device. */
function gpuNames(): readonly string[] {
  const directory = '/proc/driver/nvidia/gpus';
  try {
    return readdirSync(directory).map((gpu) => {
      const information = readFileSync(path.join(directory, gpu, 'information'), 'utf8');
      return /^Model:\s*(.+)$/m.exec(information)?.[1]?.trim() ?? 'unknown GPU';
    });
  } catch {
    return [];
  }
}
