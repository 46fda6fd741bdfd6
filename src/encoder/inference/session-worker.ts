/**
 * The worker thread that runs ONNX Runtime, and its only importer. `session.run` returns a promise but blocks its thread, so this
 * thread does nothing else.
 *
 * Batches that arrive during a run are read after it. Queries run before documents, even if a document batch came first. After
 * `queryBurstMax` query batches in a row a waiting document batch runs.
 */
import type * as OnnxRuntime from 'onnxruntime-node';
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { assertInvariant } from '../../errors.ts';
import { requireOfRuntime } from '../../process/installation.ts';
import { lowerPriority } from '../../process/process-tuning.ts';
import { cudaProblem } from './cuda/cuda-library.ts';
import { noPooling } from '../protocol/row-places.ts';
import { halfBits } from './halves.ts';
import { RowMaker, Rotation } from './rows.ts';
import type { SessionModel } from '../model/served-model.ts';
import {
  type BatchMessage,
  type BatchOutput,
  type SessionWorkerData,
  type WorkerReply,
} from './session-protocol.ts';
import { normalise } from './unit-rows.ts';

assertInvariant(parentPort !== null, 'the session worker runs in a worker thread');
const require = requireOfRuntime();
const { InferenceSession, Tensor } = require('onnxruntime-node') as typeof OnnxRuntime;
const port = parentPort;
const data = workerData as SessionWorkerData;

/** After so many query batches in a row a waiting document batch goes first. */
const queryBurstMax = 8;

/** Batches that arrived and have not run yet. */
const pending: BatchMessage[] = [];
let queriesInARow = 0;
let working = false;

/** The rotations of models whose rows have few bits. */
const rotations = data.models.map(({ dim, rowBits }) => (rowBits === 8 ? undefined : new Rotation(dim)));
const rowMakers = data.models.map((model) => new RowMaker(model));
/** The batches that have run, and whose rows are being made. A GPU runs the next batch meanwhile. */
const making = new Set<Promise<void>>();
const makingMost = { cpu: 1, cuda: 2 } as const;
const sessions = await open();
if (sessions !== undefined) {
  port.on('message', (batch: BatchMessage) => {
    pending.push(batch);
    void work();
  });
}

/** The session of each model. */
interface Sessions {
  readonly provider: 'cpu' | 'cuda';
  readonly usual: readonly OnnxRuntime.InferenceSession[];
  readonly lone: readonly OnnxRuntime.InferenceSession[];
}

async function open(): Promise<Sessions | undefined> {
  const attempts: ('cpu' | 'cuda')[] = data.provider === 'auto' ? ['cuda', 'cpu'] : [data.provider];
  let fallback: string | undefined;
  for (const provider of attempts) {
    try {
      const problem = provider === 'cuda' ? cudaProblem() : undefined;
      if (problem !== undefined) throw new Error(problem);
      // On Linux this affects this thread and the threads that ONNX Runtime starts from it.
      if (provider === 'cpu') lowerPriority(data.niceness);
      const usual = await createSessions(provider, data.intraOpThreads);
      const hasLone = provider === 'cpu' && data.loneThreads > data.intraOpThreads;
      const lone = hasLone ? await createSessions(provider, data.loneThreads) : usual;
      reply({ type: 'ready', provider, fallback });
      return { provider, usual, lone };
    } catch (error) {
      fallback = `${provider}: ${(error as Error).message}`;
    }
  }
  reply({ type: 'failed', message: fallback ?? 'no provider' });
  return undefined;
}

/** One session for models with the same file of a graph. */
async function createSessions(
  provider: 'cpu' | 'cuda',
  threads: number,
): Promise<OnnxRuntime.InferenceSession[]> {
  const opened = new Map<string, Promise<OnnxRuntime.InferenceSession>>();
  return Promise.all(
    data.models.map(async (model) => {
      const { file } = model.graphs[provider];
      const opening = opened.get(file) ?? createSession(model, provider, threads);
      opened.set(file, opening);
      const session = await opening;
      checkGraph(session, model);
      return session;
    }),
  );
}

async function createSession(
  model: SessionModel,
  provider: 'cpu' | 'cuda',
  threads: number,
): Promise<OnnxRuntime.InferenceSession> {
  return InferenceSession.create(model.graphs[provider].file, {
    executionProviders: provider === 'cuda' ? [{ name: 'cuda', deviceId: data.deviceId }, 'cpu'] : ['cpu'],
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    executionMode: 'sequential',
    graphOptimizationLevel: 'all',
    // Shapes differ from batch to batch, so remembered allocation patterns would only pile up.
    enableMemPattern: false,
    logSeverityLevel: 3,
    // Threads of a run wait for each other by spinning, because sleeping costs as much as the second thread gains. After the run they
    // must not keep cores busy that the search engine uses. This is the setting `session.force_spinning_stop`.
    extra: { session: { force_spinning_stop: '1' } },
  });
}

/** Throws when inputs, outputs, their types or dimensions differ from the model's configuration. */
function checkGraph(session: OnnxRuntime.InferenceSession, model: SessionModel): void {
  const inputs = new Set([
    'input_ids',
    'attention_mask',
    ...(model.usesTokenTypeIds ? ['token_type_ids'] : []),
  ]);
  const surplus = session.inputNames.filter((name) => !inputs.has(name));
  if (surplus.length > 0)
    throw new Error(`the graph has inputs that the model does not name: ${surplus.join(', ')}`);
  const outputs = [model.output, model.int8Output, model.scaleOutput, model.tokenWeightOutput];
  const missing = outputs.filter((name) => name !== undefined && !session.outputNames.includes(name));
  if (missing.length > 0) throw new Error(`the graph has no output named ${missing.join(', ')}`);
  checkTypes(session, model);
  const output = session.outputMetadata.find(({ name }) => name === model.output);
  const dim = output?.isTensor === true ? output.shape.at(-1) : undefined;
  if (typeof dim === 'number' && dim > 0 && dim !== model.dim) {
    throw new Error(`the graph gives vectors of ${dim} dimensions, the model says ${model.dim}`);
  }
}

/** A graph of half precision may still take ids and give vectors as others do. */
function checkTypes(session: OnnxRuntime.InferenceSession, model: SessionModel): void {
  const assertType = (
    { name, ...value }: OnnxRuntime.InferenceSession.ValueMetadata,
    what: string,
    wanted: string,
  ) => {
    const found = 'type' in value ? value.type : 'no tensor';
    if (found === wanted) return;
    throw new Error(
      `the ${what} ${name} of the graph is of the type ${found}, not ${wanted}: convert the graph again so that inputs and outputs keep their types (keep_io_types=True in onnxconverter-common), or take its f32 graph`,
    );
  };
  for (const input of session.inputMetadata) assertType(input, 'input', 'int64');
  const used = new Set([model.output, model.scaleOutput, model.tokenWeightOutput]);
  for (const output of session.outputMetadata) {
    if (output.name === model.int8Output) assertType(output, 'output', 'int8');
    else if (used.has(output.name)) assertType(output, 'output', 'float32');
  }
}

/** Runs pending batches until there are none. */
async function work(): Promise<void> {
  if (working) return;
  working = true;
  for (let next = take(); next !== undefined; next = take()) await runAndReply(next);
  working = false;
}

/** Takes the next batch. */
function take(): BatchMessage | undefined {
  for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port)) {
    pending.push(next.message as BatchMessage);
  }
  const preferred = queriesInARow < queryBurstMax ? 'query' : 'document';
  const at = pending.findIndex(({ kind }) => kind === preferred);
  const [next] = pending.splice(Math.max(at, 0), 1);
  if (next !== undefined) queriesInARow = next.kind === 'query' ? queriesInARow + 1 : 0;
  return next;
}

/** Resolves when the next batch may run. */
async function runAndReply(batch: BatchMessage): Promise<void> {
  const { batchId } = batch;
  const failed = (error: unknown): void => {
    reply({ type: 'error', batchId, message: (error as Error).message });
  };
  try {
    const startedAt = performance.now();
    const outputs = await run(batch);
    const replied = reportOn(batch, outputs, startedAt)
      .catch(failed)
      .finally(() => making.delete(replied));
    making.add(replied);
    if (making.size >= makingMost[sessions!.provider]) await Promise.race(making);
  } catch (error) {
    failed(error);
  }
}

type Outputs = OnnxRuntime.InferenceSession.OnnxValueMapType;

/** Makes rows of what a run gave, and sends them. On a GPU this thread may be in the next run when they are made. */
async function reportOn(batch: BatchMessage, outputs: Outputs, startedAt: number): Promise<void> {
  const runEndedAt = performance.now();
  const { output, tookMs = performance.now() - runEndedAt } = await outputOf(batch, outputs);
  const arrays =
    output.kind === 'query'
      ? [output.vectors, output.offsets]
      : [output.vectors, output.scales, output.representatives, output.pooledOf];
  port.postMessage(
    {
      type: 'done',
      batchId: batch.batchId,
      runMs: runEndedAt - startedAt,
      rowsMs: tookMs,
      elapsedMs: performance.now() - startedAt,
      output,
    } satisfies WorkerReply,
    arrays.map(({ buffer }) => buffer as ArrayBuffer),
  );
}

/** Whether the graph quantises the rows of a batch itself. */
function isFused({ kind }: BatchMessage, model: SessionModel): boolean {
  const { int8Output, scaleOutput, poolFactor } = model;
  return kind === 'document' && int8Output !== undefined && scaleOutput !== undefined && poolFactor === 1;
}

async function run(batch: BatchMessage): Promise<Outputs> {
  const model = data.models[batch.modelIndex]!;
  const session = sessions![batch.lone === true ? 'lone' : 'usual'][batch.modelIndex]!;
  const weights = batch.kind === 'query' ? [model.tokenWeightOutput] : [];
  const fetches = isFused(batch, model) ? [model.int8Output, model.scaleOutput] : [model.output, ...weights];
  return session.run(
    feeds(batch, model),
    fetches.filter((name) => name !== undefined),
  );
}

interface Made {
  readonly output: BatchOutput;
  /** Milliseconds of another thread that made it. */
  readonly tookMs?: number;
}

async function outputOf(batch: BatchMessage, outputs: Outputs): Promise<Made> {
  const model = data.models[batch.modelIndex]!;
  if (isFused(batch, model)) {
    const vectors = compact(batch, outputs[model.int8Output!]!.data as Int8Array, model.dim);
    const scales = compact(batch, outputs[model.scaleOutput!]!.data as Float32Array, 1);
    return { output: { kind: 'document', vectors, scales: halfBits(scales), ...noPooling() } };
  }
  const rows = compact(batch, outputs[model.output]!.data as Float32Array, model.dim);
  if (model.normalise) normalise(rows, model.dim);
  if (batch.kind === 'document') {
    const maker = rowMakers[batch.modelIndex]!;
    const counts = rowCounts(batch);
    const { stored, scales, tookMs, ...pooling } =
      sessions!.provider === 'cpu' ? maker.make(rows, counts) : await maker.makeLater(rows, counts);
    return { output: { kind: 'document', vectors: stored, scales: halfBits(scales), ...pooling }, tookMs };
  }
  const offsets = weighAndOffset(rows, weightsOf(batch, outputs, model), model);
  rotations[batch.modelIndex]?.apply(rows);
  return { output: { kind: 'query', vectors: rows, offsets } };
}

function feeds(batch: BatchMessage, model: SessionModel): Record<string, OnnxRuntime.Tensor> {
  const texts = batch.lengths.length;
  const shape = [batch.paddedTexts, batch.paddedLength];
  const ids = new BigInt64Array(batch.paddedTexts * batch.paddedLength).fill(BigInt(model.padId));
  const mask = new BigInt64Array(ids.length);
  let from = 0;
  for (let text = 0; text < texts; text++) {
    const to = text * batch.paddedLength;
    const length = batch.lengths[text]!;
    for (let i = 0; i < length; i++) ids[to + i] = BigInt(batch.ids[from + i]!);
    mask.fill(1n, to, to + batch.attended[text]!);
    from += length;
  }
  // A softmax needs at least one attended position, also in the texts of the padding.
  for (let text = texts; text < batch.paddedTexts; text++) mask[text * batch.paddedLength] = 1n;
  return {
    input_ids: new Tensor('int64', ids, shape),
    attention_mask: new Tensor('int64', mask, shape),
    ...(model.usesTokenTypeIds
      ? { token_type_ids: new Tensor('int64', new BigInt64Array(ids.length), shape) }
      : {}),
  };
}

/** The kept positions of a padded output [texts, paddedLength, width], one after the other. */
function compact<T extends Int8Array | Float32Array>(batch: BatchMessage, padded: T, width: number): T {
  const rows = new (padded.constructor as new (length: number) => T)(batch.rows * width);
  let position = 0;
  let to = 0;
  for (let text = 0; text < batch.lengths.length; text++) {
    const length = batch.lengths[text]!;
    const from = text * batch.paddedLength * width;
    if (batch.kept === undefined) {
      rows.set(padded.subarray(from, from + length * width), to);
      to += length * width;
    } else {
      for (let i = 0; i < length; i++) {
        if (batch.kept[position + i] === 0) continue;
        rows.set(padded.subarray(from + i * width, from + (i + 1) * width), to);
        to += width;
      }
    }
    position += length;
  }
  assertInvariant(to === rows.length, 'the rows of a batch do not add up');
  return rows;
}

/** u32 [texts]: how many positions of each text yield a row. */
function rowCounts({ lengths, kept }: BatchMessage): Uint32Array {
  if (kept === undefined) return lengths;
  let from = 0;
  return lengths.map((length) => {
    const own = kept.subarray(from, (from += length));
    return own.reduce((sum, isKept) => sum + isKept, 0);
  });
}

/** f32 [rows]: the weights of the rows of queries, whose positions all yield one; `undefined` if all weights are 1. */
function weightsOf(batch: BatchMessage, outputs: Outputs, model: SessionModel): Float32Array | undefined {
  const { tokenWeightOutput, tokenWeights } = model;
  if (tokenWeights !== undefined) return Float32Array.from(batch.ids, (id) => tokenWeights[id] ?? 1);
  if (tokenWeightOutput === undefined) return undefined;
  return compact(batch, outputs[tokenWeightOutput]!.data as Float32Array, 1);
}

/** Multiplies each row by its weight, in place. Returns f32 [rows]: the product of each row and the centring mean. */
function weighAndOffset(
  rows: Float32Array,
  weights: Float32Array | undefined,
  model: SessionModel,
): Float32Array {
  const offsets = new Float32Array(rows.length / model.dim);
  for (let r = 0; r < offsets.length; r++) {
    const weight = weights === undefined ? 1 : weights[r]!;
    let offset = 0;
    for (let d = 0; d < model.dim; d++) {
      const value = rows[r * model.dim + d]! * weight;
      rows[r * model.dim + d] = value;
      if (model.centring !== undefined) offset += value * model.centring[d]!;
    }
    offsets[r] = offset;
  }
  return offsets;
}

function reply(message: WorkerReply): void {
  port.postMessage(message);
}
