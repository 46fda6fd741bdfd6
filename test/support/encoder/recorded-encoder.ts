/**
 * An encoder that repeats what a real one gave. With it a test of stored rows depends neither on the processor nor on the runtime of
 * the model.
 */
import type {
  EncodeDocumentsOptions,
  EncodedDocument,
  EncodedQuery,
  EncoderModel,
} from '../../../src/encoder/protocol/contract.ts';
import { assertInvariant } from '../../../src/errors.ts';
import { WordEncoder } from './word-encoder.ts';

export interface Recording {
  readonly model: EncoderModel;
  /** By their texts. */
  readonly queries: Readonly<Record<string, EncodedQuery>>;
  readonly documents: Readonly<Record<string, EncodedDocument>>;
}

export class RecordedEncoder extends WordEncoder {
  readonly #recording: Recording;

  constructor(recording: Recording) {
    super();
    this.#recording = recording;
    this.served = [recording.model];
  }

  override async encodeQuery(text: string): Promise<EncodedQuery> {
    return recorded(this.#recording.queries, text);
  }

  override async *encodeDocuments(
    texts: readonly string[],
    options: EncodeDocumentsOptions,
  ): AsyncGenerator<EncodedDocument, void, undefined> {
    const documents = texts.map((text) => recorded(this.#recording.documents, text));
    const counts = documents.map(({ inputTokens }) => inputTokens);
    await options.onTokenCounts(counts, counts);
    for (const [documentIndex, document] of documents.entries()) yield { ...document, documentIndex };
  }
}

function recorded<Encoded>(all: Readonly<Record<string, Encoded>>, text: string): Encoded {
  const found = all[text];
  assertInvariant(found !== undefined, `the recording holds "${text}"`);
  return found;
}

const kinds = { Float32Array, Int8Array, Uint8Array, Uint16Array, Uint32Array };

/** JSON in which each array of numbers of one type is an object of the name of that type and its bytes in base64. */
export function recordingText(value: unknown): string {
  const packed = (_name: string, each: unknown): unknown =>
    ArrayBuffer.isView(each)
      ? {
          [each.constructor.name]: Buffer.from(each.buffer, each.byteOffset, each.byteLength).toString(
            'base64',
          ),
        }
      : each;
  return `${JSON.stringify(value, packed, 2)}\n`;
}

export function parseRecording(text: string): unknown {
  return JSON.parse(text, (_name, each: unknown) => {
    if (typeof each !== 'object' || each === null) return each;
    const [[kind, bytes] = [], ...others] = Object.entries(each);
    if (others.length > 0 || typeof bytes !== 'string' || !isKind(kind)) return each;
    return new kinds[kind](Uint8Array.from(Buffer.from(bytes, 'base64')).buffer);
  });
}

function isKind(name: string | undefined): name is keyof typeof kinds {
  return name !== undefined && Object.hasOwn(kinds, name);
}
