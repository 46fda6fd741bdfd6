/** Reads a file or standard input, plain or gzipped. The first two bytes decide, not the name. */
import { createReadStream } from 'node:fs';
import { pipeline, type Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { CommandFailure, inputError, messageOf } from './failure.ts';

export interface Block {
  readonly bytes: Buffer;
  /** Bytes of the input (compressed, if it is) that were read by then. */
  readonly bytesRead: number;
}

/** Throws a `CommandFailure` with `name` if the input is unreadable or damaged. */
export async function* readBlocks(input: string | Readable, name: string): AsyncGenerator<Block> {
  const source = typeof input === 'string' ? createReadStream(input) : input;
  let bytesRead = 0;
  const counted = async function* (): AsyncGenerator<Buffer> {
    for await (const part of source) {
      bytesRead += (part as Buffer).length;
      yield part as Buffer;
    }
  };
  try {
    const parts = counted();
    const first = await parts.next();
    if (first.done === true) return;
    const all = async function* (): AsyncGenerator<Buffer> {
      yield first.value;
      yield* parts;
    };
    const isGzip = first.value[0] === 0x1f && first.value[1] === 0x8b;
    const stream = isGzip ? pipeline(all(), createGunzip(), () => {}) : all();
    for await (const bytes of stream) yield { bytes: bytes as Buffer, bytesRead };
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    throw inputError(`cannot read ${name}: ${messageOf(error)}`, error);
  } finally {
    source.destroy();
  }
}
