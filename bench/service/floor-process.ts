/**
 * What the frameworks alone cost: a bare Fastify route and a bare stream of the encoder's contract, which answer
 * at once with as many bytes as a search does. Arguments: characters of the HTTP answer, rows and dimensions of
 * the encoder's answer, path of a socket. Prints one JSON line with its address; ends with standard input.
 */
import { Server, ServerCredentials, type ServerDuplexStream } from '@grpc/grpc-js';
import Fastify from 'fastify';
import {
  bytesOf,
  encoderService,
  type EncodeQueriesRequest,
  type EncodeQueriesResponse,
} from '../../src/encoder/protocol/wire.ts';

const [characters = 0, rows = 0, dim = 0] = process.argv.slice(2).map(Number);
const socket = process.argv[5] ?? '';
const text = JSON.stringify('x'.repeat(Math.max(0, characters - 2)));
const vectors = bytesOf(Float32Array.from({ length: rows * dim }, Math.random));
const offsets = bytesOf(new Float32Array(rows));

const app = Fastify();
app.post('/', async (_, reply) => reply.header('x-request-id', 'floor').type('application/json').send(text));
const url = await app.listen({ host: '127.0.0.1', port: 0 });

const server = new Server();
const timings = { tokenizeMs: 0, queueMs: 0, runMs: 0 };
server.addService(encoderService, {
  encodeQueries: (call: ServerDuplexStream<EncodeQueriesRequest, EncodeQueriesResponse>) => {
    const reply = { inputTokens: rows, rows, vectors, offsets, timings, problem: '' };
    call.on('data', ({ items }: EncodeQueriesRequest) => {
      call.write({ items: items.map(({ number }) => ({ number, reply })) });
    });
    call.on('end', () => call.end());
  },
});
await new Promise<void>((resolve, reject) => {
  server.bindAsync(`unix:${socket}`, ServerCredentials.createInsecure(), (error) =>
    error === null ? resolve() : reject(error),
  );
});
process.stdout.write(`${JSON.stringify({ event: 'ready', url })}\n`);
process.stdin.resume().on('end', () => process.exit(0));
