/** The gRPC server of an encoder process. It turns messages into requests to the core, and failures into statuses. */
import {
  Server as GrpcServer,
  type ServerCredentials,
  type ServerUnaryCall,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js';
import { randomUUID } from 'node:crypto';
import type { Server } from 'node:net';
import type { Logger } from '../../observation/logging.ts';
import { type CallError, callError } from '../protocol/call-error.ts';
import { type DocumentCall, serveDocuments } from './document-server.ts';
import type { CallLimits, EncodeRequest, EncoderCore } from '../scheduling/encoder-core.ts';
import { EncoderFailure, type FailureKind } from '../scheduling/encoder-failure.ts';
import { compareVersions } from '../model/installed-models.ts';
import { addHealthService } from '../protocol/health.ts';
import { listen } from './listener.ts';
import { QueryServer, type QueriesCall } from './query-server.ts';
import { stageBoundsMs } from '../scheduling/stage-times.ts';
import {
  bytesOf,
  type CountTokensRequest,
  type CountTokensResponse,
  type LocateTokensRequest,
  type LocateTokensResponse,
  type EncoderHandlers,
  encoderService,
  type GetInfoResponse,
  type GetStatisticsResponse,
  messageBytesMax,
  type ModelReference,
  requestBounds,
} from '../protocol/wire.ts';

export interface EncoderServerOptions {
  readonly core: EncoderCore;
  readonly provider: string;
  readonly deviceId: number;
  readonly log: Logger;
  /** The recent 99th percentile of the delay of the event loop, in milliseconds. */
  readonly loopDelayP99Ms: () => number;
}

export interface EncoderServer {
  /** Binds `unix:/path` or `host:port` (0 = any port). Resolves to the port, or to 0 for a socket. */
  listen(address: string, credentials: ServerCredentials): Promise<number>;
  /** Sets the health to SERVING. */
  serve(): void;
  /** Sets the health to NOT_SERVING. Resolves when all open calls have ended. */
  drain(): Promise<void>;
}

interface GrpcCall {
  readonly cancelled: boolean;
  getDeadline(): Date | number;
  on(event: 'cancelled', listener: () => void): unknown;
}

/** The longest time until the deadline of a call. */
const deadlineMsMax = 60 * 60 * 1000;

const empty = Buffer.alloc(0);

export function createEncoderServer(options: EncoderServerOptions): EncoderServer {
  const server = new GrpcServer({
    'grpc.max_receive_message_length': messageBytesMax,
    'grpc.max_send_message_length': messageBytesMax,
    // Its statistics are not read.
    'grpc.enable_channelz': 0,
  });
  const setHealth = addHealthService(server);
  const queryServers = new Set<QueryServer>();
  let listener: Server | undefined;
  server.addService(encoderService, {
    ...informationHandlers(options),
    ...tokenHandlers(options),
    ...encodeHandlers(options, queryServers),
  } satisfies EncoderHandlers);

  return {
    listen: async (address, credentials) => {
      const injector = server.createConnectionInjector(credentials);
      listener = await listen(address, (connection) => injector.injectConnection(connection));
      const bound = listener.address();
      return typeof bound === 'object' ? (bound?.port ?? 0) : 0;
    },
    serve: () => setHealth('SERVING'),
    drain: async () => {
      setHealth('NOT_SERVING');
      for (const queries of queryServers) queries.drain();
      const disconnected = new Promise<void>((resolve) => {
        if (listener === undefined) resolve();
        else listener.close(() => resolve());
      });
      await new Promise<void>((resolve) => {
        server.tryShutdown(() => resolve());
      });
      // The last answers have left when their connections have ended.
      await disconnected;
    },
  };
}

function informationHandlers(options: EncoderServerOptions) {
  const { core, log, provider, deviceId } = options;
  const instance = randomUUID();
  // Nodes of the release before take the first version of a model for new indexes. The oldest is one that all nodes know.
  const models = core.models.toSorted((a, b) => compareVersions(a.version, b.version));
  return {
    GetInfo: unary<unknown, GetInfoResponse>(log, async () => ({
      models: models.map(({ name, version, dim, rowBits, poolFactor, windowTokensMax }) => ({
        name,
        version,
        dim,
        rowBits,
        poolFactor,
        windowTokensMax,
      })),
      provider,
      instance,
      grouped: true,
    })),

    GetStatistics: unary<unknown, GetStatisticsResponse>(log, async () => ({
      ...core.statistics(),
      stageBoundsMs,
      provider,
      deviceId,
      loopDelayP99Ms: options.loopDelayP99Ms(),
      residentBytes: process.memoryUsage.rss(),
    })),
  };
}

function tokenHandlers({ core, log }: EncoderServerOptions) {
  return {
    CountTokens: unary<CountTokensRequest, CountTokensResponse>(log, async (request, limits) => {
      if (request.texts.length > requestBounds.documents) {
        throw new EncoderFailure('invalid', `more than ${requestBounds.documents} texts`);
      }
      const counts = await core.countTokens(request.texts, targeted(request, limits));
      return { tokenCounts: bytesOf(counts) };
    }),

    LocateTokens: unary<LocateTokensRequest, LocateTokensResponse>(log, async (request, limits) => {
      if (Buffer.byteLength(request.text) > requestBounds.locatedBytes) {
        throw new EncoderFailure('invalid', `a text exceeds ${requestBounds.locatedBytes} bytes`);
      }
      const { text, chunking, chunkIndex } = request;
      const chunk = chunking === null ? undefined : { chunking, chunkIndex };
      const spans = await core.locateTokens({ text, chunk }, targeted(request, limits));
      return spans === undefined
        ? { starts: empty, ends: empty, problem: 'the tokens of this text cannot be located' }
        : { starts: bytesOf(spans.starts), ends: bytesOf(spans.ends), problem: '' };
    }),
  };
}

/** `queryServers`: holds the open query streams. */
function encodeHandlers({ core, log }: EncoderServerOptions, queryServers: Set<QueryServer>) {
  // The messages of the runtime name nodes and shapes, never the text.
  const logRefusal =
    (text: string) =>
    ({ message }: Error): void =>
      log.error({ reason: message }, `${text} cannot be encoded`);
  return {
    EncodeQueries: (call: QueriesCall) => {
      const queries = new QueryServer(call, {
        core,
        targeted,
        statusOf: (error) => asStatus(error, undefined, log),
        onRefusal: logRefusal('a query'),
        onEnd: () => queryServers.delete(queries),
      });
      queryServers.add(queries);
    },

    EncodeDocuments: (call: DocumentCall) => {
      void within(call, async (limits) => {
        const { signal } = limits;
        try {
          await serveDocuments(core, call, signal, {
            targeted: (open) => targeted(open, limits),
            onRefusal: logRefusal('a document'),
          });
          call.end();
        } catch (error) {
          call.emit('error', asStatus(error, signal, log));
        }
      });
    },
  };
}

function unary<Request, Response>(
  log: Logger,
  handle: (request: Request, limits: CallLimits) => Promise<Response>,
): (call: ServerUnaryCall<Request, Response>, callback: sendUnaryData<Response>) => void {
  const answer = async (
    call: ServerUnaryCall<Request, Response>,
    callback: sendUnaryData<Response>,
  ): Promise<void> => {
    let response: Response;
    try {
      response = await within(call, async (limits) => handle(call.request, limits));
    } catch (error) {
      callback(asStatus(error, undefined, log));
      return;
    }
    callback(null, response);
  };
  return (call, callback) => void answer(call, callback);
}

function targeted(
  request: { readonly model: ModelReference | null; readonly tenantId: string },
  limits: CallLimits,
): EncodeRequest {
  const { model, tenantId } = request;
  if (model === null) throw new EncoderFailure('invalid', 'the request names no model');
  if (tenantId.length > requestBounds.identifierLength) {
    throw new EncoderFailure('invalid', `tenant_id exceeds ${requestBounds.identifierLength} characters`);
  }
  return { model, tenantId, ...limits };
}

/** Runs the work of a call. The signal aborts when the caller has gone or the deadline has passed. */
async function within<T>(call: GrpcCall, work: (limits: CallLimits) => Promise<T>): Promise<T> {
  const deadlineMs = deadlineOf(call);
  const over = new AbortController();
  const gone = (): void => over.abort(new EncoderFailure('cancelled', 'the caller has gone'));
  if (call.cancelled) gone();
  else call.on('cancelled', gone);
  // The transport ends a call at its deadline only after all writes have left, and a client may read nothing. So a timer ends
  // it. A timer may be early by less than a millisecond.
  const late = setTimeout(
    () => over.abort(new EncoderFailure('deadline', 'the deadline has passed')),
    deadlineMs - Date.now() + 1,
  );
  try {
    return await work({ deadlineMs, signal: over.signal });
  } finally {
    clearTimeout(late);
  }
}

function deadlineOf(call: GrpcCall): number {
  const deadline = call.getDeadline();
  return Math.min(typeof deadline === 'number' ? deadline : deadline.getTime(), Date.now() + deadlineMsMax);
}

/** As proto/encoder.proto says. */
const statusOf = {
  invalid: status.INVALID_ARGUMENT,
  precondition: status.FAILED_PRECONDITION,
  exhausted: status.RESOURCE_EXHAUSTED,
  deadline: status.DEADLINE_EXCEEDED,
  cancelled: status.CANCELLED,
  internal: status.INTERNAL,
} as const satisfies Record<FailureKind, status>;

/** Converts a failure to a status. Messages hold numbers and names, never the text of a request. */
function asStatus(error: unknown, signal: AbortSignal | undefined, log: Logger): CallError {
  const failure =
    error instanceof EncoderFailure
      ? error
      : new EncoderFailure(signal?.aborted === true ? 'cancelled' : 'internal', (error as Error).message);
  if (failure.kind === 'internal') log.error({ err: error }, 'request failed');
  return callError(statusOf[failure.kind], failure.message, failure.retryDelayMs);
}
