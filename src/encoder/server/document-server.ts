/**
 * The server's side of one `EncodeDocuments` call. It reads `open` and the documents, answers their token counts, waits for
 * `proceed`, and writes the parts. Both directions follow the flow control of the transport.
 */
import type { ServerDuplexStream } from '@grpc/grpc-js';
import type { DocumentPart } from '../scheduling/document-job.ts';
import type { DocumentsRequest, EncodeRequest, EncoderCore } from '../scheduling/encoder-core.ts';
import { EncoderFailure, refusalMessage } from '../scheduling/encoder-failure.ts';
import { ItemWriter } from '../protocol/item-writer.ts';
import { MessageReader, writeMessage } from '../protocol/message-stream.ts';
import {
  bytesOf,
  type EncodeDocumentsRequest,
  type EncodeDocumentsResponse,
  type OpenMessage,
  type PartMessage,
  requestBounds,
} from '../protocol/wire.ts';

export type DocumentCall = ServerDuplexStream<EncodeDocumentsRequest, EncodeDocumentsResponse>;

/** Serves the call. Rejects when it fails. */
export async function serveDocuments(
  core: EncoderCore,
  call: DocumentCall,
  signal: AbortSignal,
  {
    targeted,
    onRefusal,
  }: {
    readonly targeted: (open: OpenMessage) => EncodeRequest;
    /** Called for each document that cannot be encoded. */
    readonly onRefusal: (problem: Error) => void;
  },
): Promise<void> {
  const messages = new MessageReader<EncodeDocumentsRequest>(call, signal);
  const write = async (message: EncodeDocumentsResponse): Promise<void> =>
    writeMessage(call, message, signal);
  const { open } = await nextMessage(messages);
  if (!open) throw new EncoderFailure('invalid', 'the first message must be open');
  const request = documentsRequest(open, targeted(open));
  const admitted = await core.admitDocuments(documentTexts(messages, open.documentCount), request);
  try {
    const { tokenCounts, unknownCounts, wholeCounts } = admitted;
    await write({
      parts: [],
      tokenCounts: {
        tokenCounts: bytesOf(tokenCounts),
        unknownCounts: bytesOf(unknownCounts),
        wholeCounts: wholeCounts === undefined ? Buffer.alloc(0) : bytesOf(wholeCounts),
      },
    });
    const { proceed } = await nextMessage(messages);
    if (!proceed) throw new EncoderFailure('invalid', 'proceed must follow the documents');
    const writePart = open.grouped
      ? partWriter(call, signal)
      : async (part: PartMessage) => write({ part, parts: [] });
    await admitted.run(async (part) => {
      if (part.problem !== undefined) onRefusal(part.problem);
      await writePart(partMessage(part));
    });
  } finally {
    admitted.release();
  }
}

/** Writes parts that are ready at a time in one message. */
function partWriter(call: DocumentCall, signal: AbortSignal): (part: PartMessage) => Promise<void> {
  const writer = new ItemWriter<PartMessage>({
    write: ({ items }, taken) => call.write({ parts: items } satisfies EncodeDocumentsResponse, taken),
    end: () => undefined,
  });
  const ended = Promise.withResolvers<never>();
  ended.promise.catch(() => undefined);
  signal.addEventListener('abort', () => ended.reject(signal.reason));
  return async (part) => {
    signal.throwIfAborted();
    await Promise.race([ended.promise, new Promise<void>((resolve) => writer.write(part, resolve))]);
  };
}

function documentsRequest(open: OpenMessage, request: EncodeRequest): DocumentsRequest {
  const { chunking, documentCount, documentTokensMax, tokensMax } = open;
  if (chunking === null) throw new EncoderFailure('invalid', 'open names no chunking');
  if (documentCount < 1 || documentCount > requestBounds.documents) {
    throw new EncoderFailure('invalid', `document_count must be from 1 to ${requestBounds.documents}`);
  }
  if (documentTokensMax === 0 && tokensMax === 0) return { ...request, chunking };
  const cut = { documentTokensMax: documentTokensMax || Infinity, tokensMax: tokensMax || Infinity };
  return { ...request, chunking, cut };
}

async function* documentTexts(
  messages: MessageReader<EncodeDocumentsRequest>,
  count: number,
): AsyncGenerator<string, void, undefined> {
  for (let i = 0; i < count;) {
    const { document } = await nextMessage(messages);
    if (!document) throw new EncoderFailure('invalid', `document ${i} is missing`);
    if (document.more.length >= count - i)
      throw new EncoderFailure('invalid', 'there are too many documents');
    for (const text of [document.text, ...document.more]) {
      if (Buffer.byteLength(text) > requestBounds.documentBytes) {
        throw new EncoderFailure('invalid', `document ${i} exceeds ${requestBounds.documentBytes} bytes`);
      }
      yield text;
      i++;
    }
  }
}

async function nextMessage(messages: MessageReader<EncodeDocumentsRequest>): Promise<EncodeDocumentsRequest> {
  const message = await messages.next();
  if (message === undefined) throw new EncoderFailure('invalid', 'the stream ended early');
  return message;
}

function partMessage(part: DocumentPart): PartMessage {
  return {
    documentIndex: part.documentIndex,
    chunkRows: bytesOf(part.chunkRows),
    vectors: joined(part.vectors),
    scales: joined(part.scales),
    chunkRanges: bytesOf(
      Uint32Array.from(part.places.flatMap(({ start, end, rows }) => [start, end, rows.length])),
    ),
    rowPlaces: joined(part.places.map(({ rows }) => rows)),
    tokens: part.tokens,
    last: part.last,
    timings: part.timings ?? null,
    problem: part.problem === undefined ? '' : refusalMessage,
  };
}

function joined(arrays: readonly (Int8Array | Uint8Array | Uint16Array)[]): Buffer {
  return arrays.length === 1 ? bytesOf(arrays[0]!) : Buffer.concat(arrays.map((array) => bytesOf(array)));
}
