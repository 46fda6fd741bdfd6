/**
 * Runs a model in an encoder process, as the service does, and checks the vectors: they must have length 1, and the vectors
 * of a text must not depend on the texts beside it in a batch. Some of the vectors become golden values in the manifest.
 * Every encoder that loads the model later is checked with them.
 */
import { createEncoderPool } from '../../encoder/client/pool.ts';
import { documentSequence, querySequence } from '../../encoder/model/colbert-rules.ts';
import { loadModel, type ServedModel } from '../../encoder/model/served-model.ts';
import type { EncodedDocument, EncoderPool } from '../../encoder/protocol/contract.ts';
import { superviseEncoders } from '../../encoder/supervision/supervisor.ts';
import { inputError } from '../failure.ts';

export interface GoldenText {
  readonly text: string;
  readonly kind: 'query' | 'document';
  readonly input_ids: readonly number[];
  readonly rows: readonly { readonly row: number; readonly values: readonly number[] }[];
  readonly tolerance: number;
}

/** Short and long, with punctuation, accents, other scripts, and strings that look like special tokens. */
const texts = [
  'x',
  'Which tissues express the receptor?',
  'naïve Bayes: 3.14 [MASK] 東京',
  'Late interaction scores a document by the best match of every query token.',
  '(a) e.g. — "quoted", isn\'t it? 🙂',
  'one two three four five six seven eight nine ten eleven twelve',
  'UPPER lower MiXeD 1234567890 under_score',
  'The quick brown fox jumps over the lazy dog. '.repeat(4),
];

const loadMsMax = 240_000;
/** The first values of a row are golden values, with this absolute tolerance. */
const valuesOfRow = 8;
const tolerance = 0.02;
/** Arithmetic in 16 bits and quantisation to 8 change the length of a unit vector by less. */
const normTolerance = 0.03;
/** A text alone and in a batch may differ by one int8 step, in at most this share of components. */
const differingShareMax = 0.01;

/** `f32Advice`: what to take instead of a graph whose vectors depend on the batch. */
export async function goldenRun(
  directory: string,
  f32Advice: string,
): Promise<{ readonly model: ServedModel; readonly golden: readonly GoldenText[] }> {
  const model = await loadModel(directory);
  const { rules, tokenizer } = model;
  return withEncoder(directory, async (encoder) => {
    const golden: GoldenText[] = [];
    const tried = [...texts, longestText(model)];
    const ids = { model, tenantId: 'models add' };
    const limits = { deadlineMs: Date.now() + loadMsMax, signal: new AbortController().signal };
    const options = {
      ...ids,
      ...limits,
      // Each text is one chunk, like the golden sequence.
      chunking: { maxTokens: model.windowTokensMax, overlapTokens: 0, minimumChunkTokens: 1 },
      onTokenCounts: () => undefined,
    };
    for (const text of tried) {
      const { vectors, rows, problem } = await encoder.encodeQuery(text, options);
      if (problem !== undefined) throw inputError(`a text cannot be encoded: ${problem}`);
      const { ids: inputIds } = querySequence(rules, tokenizer.encode(rules.queryLead + text));
      if (rows !== inputIds.length) throw inputError('the graph does not return one vector for each token');
      const { tokenWeightOutput, tokenWeights } = model.session;
      if (tokenWeightOutput === undefined && tokenWeights === undefined) assertUnit(vectors, model.dim);
      golden.push(goldenOf(text, inputIds, { vectors, dim: model.dim }));
    }
    const together = await documentsOf(encoder.encodeDocuments(tried, options));
    for (const [i, text] of tried.entries()) {
      const [alone] = await documentsOf(encoder.encodeDocuments([text], options));
      assertSame(alone!, together[i]!, { rowBits: model.rowBits, f32Advice });
      const sequence = documentSequence(
        rules,
        tokenizer.encode(rules.documentLead + text).subarray(0, model.windowTokensMax),
      );
      if (alone!.chunkRows[0] !== sequence.rows)
        throw inputError('the graph does not return one vector for each token of a document');
      if (model.rowBits === 8 && model.session.centring === undefined)
        assertUnit(unquantised(alone!, model.dim), model.dim);
    }
    return { model, golden: golden.slice(0, 4) };
  });
}

/** A text that fills the longest query and the longest window of a document. Some graphs return NaN for it. */
function longestText({ tokenizer, rules, windowTokensMax }: ServedModel): string {
  const words = texts.join(' ');
  const tokensWanted = Math.max(windowTokensMax, rules.queryPositionsMax);
  return words.repeat(Math.ceil(tokensWanted / tokenizer.encode(words).length));
}

async function withEncoder<T>(directory: string, work: (encoders: EncoderPool) => Promise<T>): Promise<T> {
  let lastWords = 'it said nothing';
  const supervisor = await superviseEncoders({
    processes: 1,
    modelDirectories: [directory],
    provider: 'cpu',
    threads: 1,
    startMs: loadMsMax,
    logLevel: 'warn',
    onLog: (line) => (lastWords = messageIn(line) ?? lastWords),
  });
  const encoder = createEncoderPool({
    addresses: supervisor.addresses,
    exclusive: true,
    healWaitMs: loadMsMax,
  });
  try {
    await supervisor.ready.catch((error: unknown) => {
      throw inputError(`the model does not run: ${lastWords}`, error);
    });
    return await work(encoder);
  } finally {
    await encoder.close();
    await supervisor.close();
  }
}

/** The message of a fatal log line, or a line of the runtime itself. */
function messageIn(line: string): string | undefined {
  try {
    const { level, msg } = JSON.parse(line) as { readonly level?: string; readonly msg?: string };
    return level === 'fatal' ? msg : undefined;
  } catch {
    return line;
  }
}

async function documentsOf(stream: AsyncIterable<EncodedDocument>): Promise<EncodedDocument[]> {
  const documents: EncodedDocument[] = [];
  for await (const document of stream) {
    if (document.problem !== undefined) throw inputError(`a text cannot be encoded: ${document.problem}`);
    documents[document.documentIndex] = document;
  }
  return documents;
}

function goldenOf(
  text: string,
  inputIds: Int32Array,
  { vectors, dim }: { readonly vectors: Float32Array; readonly dim: number },
): GoldenText {
  const rows = [...new Set([0, Math.floor(inputIds.length / 2), inputIds.length - 1])];
  return {
    text,
    kind: 'query',
    input_ids: [...inputIds],
    rows: rows.map((row) => ({
      row,
      values: [...vectors.subarray(row * dim, row * dim + Math.min(dim, valuesOfRow))],
    })),
    tolerance,
  };
}

function unquantised({ vectors, scales }: EncodedDocument, dim: number): Float32Array {
  const halves = new Float16Array(scales.buffer, scales.byteOffset, scales.length);
  return Float32Array.from(vectors, (value, i) => value * halves[Math.floor(i / dim)]!);
}

function assertUnit(vectors: Float32Array, dim: number): void {
  for (let from = 0; from < vectors.length; from += dim) {
    const norm = Math.hypot(...vectors.subarray(from, from + dim));
    if (!(Math.abs(norm - 1) <= normTolerance)) {
      throw inputError(
        `the output of the graph is not normalised: a vector has length ${norm.toFixed(3)} in ${dim} dimensions`,
      );
    }
  }
}

/** The vectors of a text must not depend on another text, which may be another tenant's. */
function assertSame(
  alone: EncodedDocument,
  together: EncodedDocument,
  { rowBits, f32Advice }: { readonly rowBits: number; readonly f32Advice: string },
): void {
  let differing = 0;
  let stepsMax = 0;
  for (const [i, value] of alone.vectors.entries()) {
    const steps = Math.abs(value - together.vectors[i]!);
    if (steps > 0) differing += 1;
    stepsMax = Math.max(stepsMax, steps);
  }
  // A byte of few bits holds codes of several components. So a step of one of them changes the byte by up to 192.
  if ((rowBits < 8 || stepsMax <= 1) && differing <= alone.vectors.length * differingShareMax) return;
  const by = rowBits < 8 ? 'bytes differ' : `components differ, by up to ${stepsMax} steps of 8 bits`;
  throw inputError(
    `the vectors of a text depend on the texts beside it (${differing} of ${alone.vectors.length} ${by}), as those of graphs with dynamic quantisation do: ${f32Advice}`,
  );
}
