/**
 * A fake encoder for tests of the service. Words are tokens, the vector of a word depends on the word alone, and every window of
 * `maxTokens` words is a chunk. A test can delay its work and make it fail. The end-to-end tests run the real encoder.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type {
  EncodeDocumentsOptions,
  EncodeOptions,
  EncodeQueryOptions,
  EncodedDocument,
  EncodedQuery,
  EncoderPool,
  EncoderModel,
  TokenSpans,
} from '../../../src/encoder/protocol/contract.ts';
import { cutTokens } from '../../../src/encoder/protocol/token-cut.ts';
import { packRowPlaces } from '../../../src/encoder/protocol/row-places.ts';
import {
  documentVectors,
  placesOfWords,
  queryVectors,
  wordDim,
  wordScaleBits,
  wordsOf,
} from './word-vectors.ts';

export const wordModel: EncoderModel = {
  name: 'words',
  version: '1',
  dim: wordDim,
  rowBits: 8,
  poolFactor: 1,
  windowTokensMax: 300,
};

export class WordEncoder implements EncoderPool {
  served: readonly EncoderModel[] = [wordModel];
  /** Texts that were encoded. Texts whose tokens were only counted are not in it. */
  readonly inferred: string[] = [];
  /** Awaited before each document is yielded. */
  beforeDocument: (text: string) => Promise<void> = async () => undefined;
  beforeQuery: (text: string) => Promise<void> = async () => undefined;
  onGpu = false;
  /** False: it says of no query where its words are, as encoders of earlier releases do. */
  locates = true;
  closed = false;

  models(): readonly EncoderModel[] {
    return this.served;
  }

  async modelNames(): Promise<readonly string[]> {
    return this.served.map(({ name }) => name);
  }

  runsOnGpu(): boolean {
    return this.onGpu;
  }

  ready(): boolean {
    return this.served.length > 0;
  }

  async awaitModel(wanted: {
    readonly name: string;
    readonly version?: string | undefined;
  }): Promise<EncoderModel | undefined> {
    return this.served.find(
      ({ name, version }) => name === wanted.name && (wanted.version ?? version) === version,
    );
  }

  async statistics(): Promise<readonly []> {
    return [];
  }

  async countTokens(texts: readonly string[], _options: EncodeOptions): Promise<readonly number[]> {
    return texts.map((text) => wordsOf(text).length);
  }

  async locateTokens({ text }: { readonly text: string }): Promise<TokenSpans> {
    const words = [...text.matchAll(/\S+/g)];
    return {
      starts: Uint32Array.from(words, ({ index }) => index),
      ends: Uint32Array.from(words, ({ index, 0: word }) => index + word.length),
    };
  }

  async encodeQuery(text: string, options: EncodeQueryOptions): Promise<EncodedQuery> {
    await unlessAborted(this.beforeQuery(text), options.signal);
    this.inferred.push(text);
    const words = wordsOf(text);
    return {
      inputTokens: words.length,
      // A query of spaces still has its special tokens.
      rows: Math.max(1, words.length),
      vectors: queryVectors(words.length === 0 ? [''] : words),
      offsets: new Float32Array(Math.max(1, words.length)).fill(0.25),
      ...(options.located === true && this.locates && words.length > 0
        ? { spans: await this.locateTokens({ text }) }
        : {}),
      timings: { tokenizeMs: 0, queueMs: 0, runMs: 0, rowsMs: 0 },
    };
  }

  async *encodeDocuments(
    texts: readonly string[],
    options: EncodeDocumentsOptions,
  ): AsyncGenerator<EncodedDocument, void, undefined> {
    const whole = texts.map((text) => wordsOf(text).length);
    const counts = options.cut === undefined ? whole : cutTokens(whole, options.cut);
    await options.onTokenCounts(counts, whole);
    // Documents come in another order than their texts, which the contract allows.
    for (const [documentIndex, text] of [...texts.entries()].toReversed()) {
      await unlessAborted(this.beforeDocument(text), options.signal);
      this.inferred.push(text);
      const words = wordsOf(text).slice(0, counts[documentIndex]);
      const { maxTokens } = options.chunking;
      const chunkRows = Uint32Array.from({ length: Math.ceil(words.length / maxTokens) }, (_chunk, index) =>
        Math.min(maxTokens, words.length - index * maxTokens),
      );
      yield {
        documentIndex,
        inputTokens: words.length,
        chunkRows,
        vectors: documentVectors(words),
        scales: new Uint16Array(words.length).fill(wordScaleBits),
        ...rangesOf(text, chunkRows),
        timings: { tokenizeMs: 0, queueMs: 0, runMs: 0, rowsMs: 0 },
      };
    }
  }

  async close(): Promise<void> {
    this.closed = true;
  }
}

function rangesOf(text: string, chunkRows: Uint32Array): Pick<EncodedDocument, 'chunkRanges' | 'rowPlaces'> {
  const { starts, ends } = placesOfWords(text);
  const ranges: number[] = [];
  const packed: number[] = [];
  let first = 0;
  for (const rows of chunkRows) {
    const end = first + rows;
    const spans = { starts: starts.subarray(first, end), ends: ends.subarray(first, end) };
    const places = packRowPlaces(starts[first]!, spans);
    ranges.push(starts[first]!, ends[end - 1]!, places.length);
    packed.push(...places);
    first = end;
  }
  return { chunkRanges: Uint32Array.from(ranges), rowPlaces: Uint8Array.from(packed) };
}

async function unlessAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const never = pause(600_000, undefined, { signal, ref: false }).catch(() => undefined);
  await Promise.race([work, never]);
  signal.throwIfAborted();
}
