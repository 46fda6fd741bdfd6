/**
 * The protocol over standard input and output: one JSON-RPC message a line. The SDK's own transport rounds long numbers and drops
 * a name that occurs twice in one object. This one keeps the digits, and refuses the message.
 */
import type { Readable, Writable } from 'node:stream';
import { serializeMessage } from '@modelcontextprotocol/sdk/shared/stdio.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import {
  ErrorCode,
  JSONRPCMessageSchema,
  RequestIdSchema,
  type JSONRPCMessage,
} from '@modelcontextprotocol/sdk/types.js';
import type { Block } from '../blocks.ts';
import { messageOf } from '../failure.ts';
import { isObject, parseGivenJson, parseJson, RepeatedNameError } from '../json.ts';
import { readLines } from '../jsonl.ts';

export class LineTransport implements Transport {
  onmessage?: Transport['onmessage'];
  onerror?: Transport['onerror'];
  onclose?: Transport['onclose'];
  readonly #input: Readable;
  readonly #output: Writable;

  constructor(input: Readable, output: Writable) {
    this.#input = input;
    this.#output = output;
  }

  async start(): Promise<void> {
    this.#read().catch((error: unknown) => this.#failed(error));
  }

  send(message: JSONRPCMessage): Promise<void> {
    return new Promise((resolve) => {
      if (this.#output.write(serializeMessage(message))) resolve();
      else this.#output.once('drain', resolve);
    });
  }

  async close(): Promise<void> {
    this.#input.destroy();
    this.onclose?.();
  }

  /** Ends with the input. Calls that run then are still answered. */
  async #read(): Promise<void> {
    for await (const { bytes } of readLines('standard input', { blocks: blocksOf(this.#input) })) {
      try {
        if (bytes === undefined) throw new Error('a message is too long');
        await this.#take(bytes.toString());
      } catch (error) {
        this.#failed(error);
      }
    }
  }

  async #take(text: string): Promise<void> {
    let given: unknown;
    try {
      given = parseGivenJson(text);
    } catch (error) {
      if (!(error instanceof RepeatedNameError)) throw error;
      return await this.#refuse(parseJson(text), error.message);
    }
    this.onmessage?.(JSONRPCMessageSchema.parse(given));
  }

  /** A message without an id wants no answer. */
  async #refuse(given: unknown, message: string): Promise<void> {
    const id = RequestIdSchema.safeParse(isObject(given) ? given['id'] : undefined);
    if (!id.success) throw new Error(message);
    await this.send({ jsonrpc: '2.0', id: id.data, error: { code: ErrorCode.InvalidRequest, message } });
  }

  #failed(error: unknown): void {
    this.onerror?.(error instanceof Error ? error : new Error(messageOf(error)));
  }
}

async function* blocksOf(input: Readable): AsyncGenerator<Block> {
  for await (const bytes of input) yield { bytes: bytes as Buffer, bytesRead: 0 };
}
