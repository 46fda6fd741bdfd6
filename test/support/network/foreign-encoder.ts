/**
 * An encoder that can break the gRPC contract, as a foreign or defective one might. Words are tokens, and the vector of a word
 * depends on the word alone. It answers correctly until a test asks it to misbehave.
 */
import {
  type sendUnaryData,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type ServiceDefinition,
} from '@grpc/grpc-js';

import { addHealthService } from '../../../src/encoder/protocol/health.ts';
import {
  bytesOf,
  type EncodeDocumentsRequest,
  type EncodeDocumentsResponse,
  encoderService,
  type EncodeQueriesRequest,
  type EncodeQueriesResponse,
  type EncodeQueryResponse,
  type PartMessage,
} from '../../../src/encoder/protocol/wire.ts';
import { documentVectors, queryVectors, wordDim, wordScaleBits, wordsOf } from '../encoder/word-vectors.ts';
import { pause } from '../running/eventually.ts';

export const foreignDim = wordDim;
const timings = { tokenizeMs: 0, queueMs: 0, runMs: 0, rowsMs: 0 };

/** Changes of correct answers. A field that is absent changes nothing. */
export interface Misbehaviour {
  readonly query?: (honest: EncodeQueryResponse) => EncodeQueryResponse;
  /** Changes the parts of a whole call. There may be fewer or more of them. */
  readonly parts?: (honest: readonly PartMessage[]) => readonly PartMessage[];
  /** Changes the answer to a count of tokens. */
  readonly tokenCounts?: (honest: Buffer) => Buffer;
  /** Unknown tokens of each document. Absent = they are not counted, as in encoders of earlier versions. */
  readonly unknownCounts?: readonly number[];
  /** The token counts of documents are sent again before their parts. */
  readonly countsTwice?: boolean;
  /** Changes the serialised bytes of queries' replies and of parts. */
  readonly bytes?: (honest: Buffer) => Buffer;
  /** Milliseconds before the answer to a query, and before the first part. */
  readonly delayMs?: number;
  /** A document call stays open after its last part. */
  readonly neverEnds?: boolean;
  /** The dimension that the encoder reports when a pool admits it. */
  readonly dim?: number;
  /** Absent = it is not reported, as by encoders of earlier versions. */
  readonly poolFactor?: number;
  readonly instance?: string;
  /** Is called for each text after the delay. If it returns false, the text gets no answer. */
  readonly run?: (text: string) => Promise<boolean>;
}

export interface ForeignEncoder {
  readonly address: string;
  behave(misbehaviour: Misbehaviour): void;
  /** Sets what health checks answer. */
  serve(serving: boolean): void;
  /** Number of queries without an answer, and of document calls that neither ended nor were cancelled. */
  openCalls(): number;
  close(): void;
}

export async function startForeignEncoder(): Promise<ForeignEncoder> {
  const server = new Server();
  const setHealth = addHealthService(server);
  let misbehaviour: Misbehaviour = {};
  let openCalls = 0;

  const unary =
    <Request, Response>(answer: (request: Request) => Promise<Response>) =>
    (call: ServerUnaryCall<Request, Response>, callback: sendUnaryData<Response>): void => {
      const reply = async (): Promise<void> => {
        openCalls += 1;
        const response = await answer(call.request);
        openCalls -= 1;
        callback(null, response);
      };
      void reply();
    };

  const answerQuery = async (text: string): Promise<EncodeQueryResponse | undefined> => {
    const { query = (honest) => honest, delayMs = 0, run = answers } = misbehaviour;
    await pause(delayMs);
    return (await run(text)) ? query(queryReply(text)) : undefined;
  };

  server.addService(
    withBytes(() => misbehaviour.bytes),
    {
      getInfo: unary(async () => ({
        models: [
          {
            name: 'foreign',
            version: '1',
            dim: misbehaviour.dim ?? foreignDim,
            windowTokensMax: 300,
            poolFactor: misbehaviour.poolFactor ?? 0,
          },
        ],
        provider: 'cpu',
        instance: misbehaviour.instance ?? '',
      })),
      getStatistics: unary(async () => ({})),
      countTokens: unary(async ({ texts }: { readonly texts: readonly string[] }) => ({
        tokenCounts: misbehaviour.tokenCounts?.(countsOf(texts)) ?? countsOf(texts),
      })),
      encodeQueries: (call: ServerDuplexStream<EncodeQueriesRequest, EncodeQueriesResponse>) => {
        const reply = async (number: number, text: string): Promise<void> => {
          openCalls += 1;
          const answer = await answerQuery(text);
          openCalls -= 1;
          if (answer !== undefined) call.write({ items: [{ number, reply: answer }] });
        };
        call.on('data', ({ items }: EncodeQueriesRequest) => {
          for (const { number, query } of items) if (query) void reply(number, query.text);
        });
        call.on('end', () => call.end());
      },
      encodeDocuments: (call: ServerDuplexStream<EncodeDocumentsRequest, EncodeDocumentsResponse>) => {
        openCalls += 1;
        call.on('close', () => (openCalls -= 1));
        const texts: string[] = [];
        let expected = 0;
        call.on('data', ({ open, document, proceed }: EncodeDocumentsRequest) => {
          if (open) expected = open.documentCount;
          if (document) {
            texts.push(document.text);
            if (texts.length === expected) call.write(tokenCountsOf(texts, misbehaviour));
          }
          if (proceed) void sendParts(call, texts, misbehaviour);
        });
      },
    },
  );

  const bound = Promise.withResolvers<number>();
  server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) => {
    if (error === null) bound.resolve(port);
    else bound.reject(error);
  });
  const port = await bound.promise;
  setHealth('SERVING');
  return {
    address: `127.0.0.1:${port}`,
    behave: (next) => {
      misbehaviour = next;
    },
    serve: (serving) => setHealth(serving ? 'SERVING' : 'NOT_SERVING'),
    openCalls: () => openCalls,
    close: () => server.forceShutdown(),
  };
}

const answers = async (): Promise<boolean> => Promise.resolve(true);

async function sendParts(
  call: ServerDuplexStream<EncodeDocumentsRequest, EncodeDocumentsResponse>,
  texts: readonly string[],
  { parts = (honest) => honest, countsTwice, delayMs = 0, neverEnds = false, run = answers }: Misbehaviour,
): Promise<void> {
  await pause(delayMs);
  if (call.cancelled) return;
  if (countsTwice) call.write(tokenCountsOf(texts, {}));
  for (const part of parts(texts.map(partOf))) {
    if (!(await run(texts[part.documentIndex] ?? ''))) return;
    if (call.cancelled) return;
    call.write({ part, parts: [] });
  }
  if (!neverEnds) call.end();
}

function tokenCountsOf(
  texts: readonly string[],
  { unknownCounts = [] }: Misbehaviour,
): EncodeDocumentsResponse {
  return {
    parts: [],
    tokenCounts: {
      tokenCounts: countsOf(texts),
      unknownCounts: bytesOf(Uint32Array.from(unknownCounts)),
      wholeCounts: Buffer.alloc(0),
    },
  };
}

function countsOf(texts: readonly string[]): Buffer {
  return bytesOf(Uint32Array.from(texts, (text) => wordsOf(text).length));
}

function queryReply(text: string): EncodeQueryResponse {
  const words = wordsOf(text);
  return {
    inputTokens: words.length,
    rows: words.length,
    vectors: bytesOf(queryVectors(words)),
    offsets: bytesOf(new Float32Array(words.length).fill(0.25)),
    timings,
    problem: '',
    starts: Buffer.alloc(0),
    ends: Buffer.alloc(0),
  };
}

function partOf(text: string, documentIndex: number): PartMessage {
  const words = wordsOf(text);
  return {
    documentIndex,
    chunkRows: bytesOf(Uint32Array.from(words.length === 0 ? [] : [words.length])),
    vectors: bytesOf(documentVectors(words)),
    scales: bytesOf(new Uint16Array(words.length).fill(wordScaleBits)),
    last: true,
    timings,
    problem: '',
    // Absent, as an encoder of an earlier release leaves them.
    tokens: 0,
    chunkRanges: Buffer.alloc(0),
    rowPlaces: Buffer.alloc(0),
  };
}

/** The definition of the gRPC service, with a serialiser that changes bytes as the present misbehaviour says. */
function withBytes(bytes: () => Misbehaviour['bytes']): ServiceDefinition {
  const changed = Object.entries(encoderService).map(([name, method]) => {
    if (!['EncodeQueries', 'EncodeDocuments'].includes(name)) return [name, method] as const;
    const responseSerialize = (message: unknown): Buffer => {
      const honest = method.responseSerialize(message);
      return bytes()?.(honest) ?? honest;
    };
    return [name, { ...method, responseSerialize }] as const;
  });
  return Object.fromEntries(changed);
}
