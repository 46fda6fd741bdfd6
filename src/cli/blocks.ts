/** Bytes of a file or of standard input, plain or gzipped: the first two bytes tell, whatever the name says. */
import { createReadStream } from 'node:fs';
import { pipeline, type Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { CommandFailure, messageOf } from './failure.ts';

export interface Block {
  readonly bytes: Buffer;
  /** How much of the input (compressed, if it is) had been read by then. */
  readonly bytesRead: number;
}

/** An unreadable or damaged input is a `CommandFailure` that calls it by `name`. */
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
    throw new CommandFailure('input_error', `cannot read ${name}: ${messageOf(error)}`, { cause: error });
  } finally {
    source.destroy();
  }
}
