/**
 * Makes a directory of embeddings (`embedding-directory.ts`) from text, with the model that the server would serve
 * (`MAXSIMD_MODEL`, `MAXSIMD_MODELS_DIR`).
 *
 * The texts and queries are those of a BEIR directory. Without one, the texts are the documentation of the installed packages. A
 * fiftieth of them is held back, and their first words are the queries.
 */
import { mkdirSync } from 'node:fs';
import { beir, device, integer } from '../lib/options.ts';
import { tool } from '../lib/benchmark.ts';
import { readTexts, type Texts } from '../lib/texts.ts';
import { parseConfig } from '../../src/app/config.ts';
import { tokenWindows } from '../../src/encoder/model/chunker.ts';
import { documentSequence } from '../../src/encoder/model/colbert-rules.ts';
import { loadModel, type ServedModel } from '../../src/encoder/model/served-model.ts';
import type { ChunkingParameters, EncodedDocument } from '../../src/encoder/protocol/contract.ts';
import { modelDirectoryOf } from '../../src/app/models/model-choice.ts';
import { startEncoder, type Encoders } from '../lib/model/encoder-pool.ts';
import type { Query } from './corpus.ts';
import { EmbeddingWriter } from './embedding-directory.ts';

const documentsPerCall = 50;
const heldBackEvery = 50;
const queryWords = 14;

export const searchEmbed = tool({
  usage: 'search-embed <directory>',
  summary: 'makes embeddings of texts with the served model, for `search --embeddings`',
  settings: {
    beir,
    texts: integer(2000, 'texts to encode'),
    chunkTokens: integer(256, 'tokens of a chunk, at most'),
    device: device('cpu'),
  },
  run: async ({ environment, chunkTokens, texts, beir: given, device: on, onProgress }, directory = '') => {
    const modelDirectory = await modelDirectoryOf(parseConfig(environment));
    const model = await loadModel(modelDirectory);
    const source = await sourceOf(texts, given);
    const encoder = await startEncoder(modelDirectory, on);
    try {
      mkdirSync(directory, { recursive: true });
      const writer = new EmbeddingWriter(directory);
      const { chunking } = encoder.documentOptions(chunkTokens);
      for (let from = 0; from < source.documents.length; from += documentsPerCall) {
        const batch = source.documents.slice(from, from + documentsPerCall);
        for (const document of await encode(encoder, batch, chunkTokens)) {
          const { chunkRows, vectors, scales, documentIndex } = document;
          // A pooled row stands for several tokens, so it has no id.
          const tokenIds =
            model.poolFactor === 1
              ? { tokenIds: tokenIdsOfRows(model, batch[documentIndex]!, chunking) }
              : {};
          if (chunkRows.length > 0) writer.document(chunkRows, { vectors, scales, ...tokenIds });
        }
        onProgress(`${from + batch.length} documents, ${writer.chunks} chunks`);
      }
      const queries: Query[] = [];
      for (const text of source.queries) {
        const { rows, vectors } = await encoder.pool.encodeQuery(text, encoder.callOptions());
        queries.push({ rows, vectors });
      }
      writer.finish(queries, {
        centring: model.session.centring ?? new Float32Array(model.dim),
        readme: `${source.name}, ${model.name}/${model.version}, chunks of up to ${chunkTokens} tokens\n`,
      });
    } finally {
      await encoder.close();
    }
  },
});

async function sourceOf(texts: number, given: string | undefined): Promise<Texts> {
  const source = await readTexts(texts, given);
  if (given !== undefined) return source;
  const isHeldBack = (_: string, at: number): boolean => at % heldBackEvery === heldBackEvery - 1;
  return {
    name: source.name,
    documents: source.documents.filter((text, at) => !isHeldBack(text, at)),
    queries: source.documents
      .filter(isHeldBack)
      .map((text) => text.split(/\s+/).slice(0, queryWords).join(' ')),
  };
}

/** The documents in the order of their texts. */
async function encode(
  { pool, documentOptions }: Encoders,
  texts: readonly string[],
  chunkTokens: number,
): Promise<readonly EncodedDocument[]> {
  const encoded: EncodedDocument[] = [];
  for await (const document of pool.encodeDocuments(texts, documentOptions(chunkTokens)))
    encoded.push(document);
  return encoded.toSorted((a, b) => a.documentIndex - b.documentIndex);
}

/** Vocabulary ids of the token vectors of a document: u32 [rows]. */
export function tokenIdsOfRows(
  { tokenizer, rules, windowTokensMax }: ServedModel,
  text: string,
  chunking: ChunkingParameters,
): Uint32Array {
  const ids = tokenizer.encode(text);
  const rows: number[] = [];
  for (const { start, end } of tokenWindows(ids.length, chunking, windowTokensMax)) {
    const sequence = documentSequence(rules, ids.subarray(start, end));
    rows.push(...sequence.ids.filter((_, position) => sequence.kept?.[position] !== 0));
  }
  return Uint32Array.from(rows);
}
