/**
 * Makes a directory of embeddings (`embedding-directory.ts`) from text, with the model that the server would serve
 * (`MAXSIMD_MODEL`, `MAXSIMD_MODELS_DIR`).
 *
 * Texts are those of a BEIR directory, with its queries; without one the documentation of the installed packages, a
 * fiftieth of which is held back and asked for by its first words.
 */
import { mkdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { integer } from '../options.ts';
import { parseConfig } from '../../src/config.ts';
import type { EncodedDocument, Encoder } from '../../src/encoder/contract.ts';
import { loadModel, type ServedModel } from '../../src/encoder/served-model.ts';
import { modelDirectoryOf } from '../../src/model-choice.ts';
import { readSource, type SourceTexts } from '../encoder/mixes.ts';
import { startEncoder } from '../encoder-pool.ts';
import type { Query } from './corpus.ts';
import { EmbeddingWriter } from './embedding-directory.ts';

const documentsPerCall = 50;
const heldBackEvery = 50;
const queryWords = 14;

export const embedUsage = 'search-embed DIRECTORY [--beir DIR] [--texts 2000] [--chunk-tokens 256]';

export async function embedCommand(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      beir: { type: 'string' },
      texts: { type: 'string', default: '2000' },
      'chunk-tokens': { type: 'string', default: '256' },
    },
  });
  const [directory] = positionals;
  if (directory === undefined) throw new Error(`usage: ${embedUsage}`);
  const modelDirectory = await modelDirectoryOf(parseConfig(environment));
  const model = await loadModel(modelDirectory);
  const chunkTokens = integer(values['chunk-tokens'], 'chunk-tokens');
  const source = await readTexts(integer(values.texts, 'texts'), values.beir);
  const encoder = await startEncoder(modelDirectory, {
    provider: 'cpu',
    index: 0,
    threads: availableParallelism(),
  });
  try {
    mkdirSync(directory, { recursive: true });
    const writer = new EmbeddingWriter(directory);
    for (let from = 0; from < source.documents.length; from += documentsPerCall) {
      const texts = source.documents.slice(from, from + documentsPerCall);
      for (const document of await encode(encoder.pool, model, texts, chunkTokens)) {
        if (document.chunkRows.length > 0) writer.document(document.chunkRows, document);
      }
      process.stderr.write(`${from + texts.length} documents, ${writer.chunks} chunks\n`);
    }
    const queries: Query[] = [];
    for (const text of source.queries) {
      const { rows, vectors } = await encoder.pool.encodeQuery(text, encodeOptions(model));
      queries.push({ rows, vectors });
    }
    writer.finish(queries, {
      centring: model.session.centring ?? new Float32Array(model.dim),
      readme: `${source.description}, ${model.name}/${model.version}, chunks of up to ${chunkTokens} tokens\n`,
    });
  } finally {
    await encoder.close();
  }
}

async function readTexts(texts: number, beir: string | undefined): Promise<SourceTexts> {
  const source = await readSource(Math.ceil(texts / 4), beir);
  if (source.queries.length > 0) return source;
  const isHeldBack = (_: string, at: number): boolean => at % heldBackEvery === heldBackEvery - 1;
  return {
    description: source.description,
    documents: source.documents.filter((text, at) => !isHeldBack(text, at)),
    queries: source.documents
      .filter(isHeldBack)
      .map((text) => text.split(/\s+/).slice(0, queryWords).join(' ')),
  };
}

/** The documents in the order of their texts. */
async function encode(
  pool: Encoder,
  model: ServedModel,
  texts: readonly string[],
  maxTokens: number,
): Promise<readonly EncodedDocument[]> {
  const encoded: EncodedDocument[] = [];
  const calls = pool.encodeDocuments(texts, {
    ...encodeOptions(model),
    chunking: {
      maxTokens,
      overlapTokens: Math.floor(maxTokens / 8),
      minimumChunkTokens: Math.floor(maxTokens / 16),
    },
    onTokenCounts: () => undefined,
  });
  for await (const document of calls) encoded.push(document);
  return encoded.toSorted((a, b) => a.documentIndex - b.documentIndex);
}

function encodeOptions({ name, version }: ServedModel) {
  return {
    model: name,
    modelVersion: version,
    tenantId: 'bench',
    deadlineMs: Date.now() + 600_000,
    signal: new AbortController().signal,
  };
}
