/** Reads a file or standard input, plain or gzipped. The first bytes decide, not the name. Other packings are refused. */
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
    let isFirst = true;
    for await (const bytes of stream) {
      if (isFirst) refusePacked(bytes as Buffer, name);
      isFirst = false;
      yield { bytes: bytes as Buffer, bytesRead };
    }
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    throw inputError(`cannot read ${name}: ${messageOf(error)}`, error);
  } finally {
    source.destroy();
  }
}

interface Packing {
  readonly name: string;
  /** The first bytes in hexadecimal, or those from `at` on. */
  readonly bytes: string;
  readonly at?: number;
  /** The program that unpacks it. Absent = an archive, which may hold several files. */
  readonly program?: string;
}

const packings: readonly Packing[] = [
  { name: 'zstd', bytes: '28b52ffd', program: 'zstd' },
  { name: 'bzip2', bytes: '425a68', program: 'bzip2' },
  { name: 'xz', bytes: 'fd377a585a00', program: 'xz' },
  { name: 'lz4', bytes: '04224d18', program: 'lz4' },
  { name: 'ZIP', bytes: '504b0304' },
  { name: '7-Zip', bytes: '377abcaf271c' },
  { name: 'tar', bytes: '7573746172', at: 257 },
];

/** Endings of such files. */
export const packedEndings = /\.(?:zst|bz2|xz|lz4|zip|7z|tar|tgz)$/i;

/** `beginning`: the first bytes, after gzip. */
function refusePacked(beginning: Buffer, name: string): void {
  const found = packings.find(({ bytes, at = 0 }) =>
    beginning
      .subarray(at)
      .toString('hex', 0, bytes.length / 2)
      .startsWith(bytes),
  );
  if (found === undefined) return;
  const { name: packing, program } = found;
  if (program === undefined)
    throw inputError(
      `${name} is an archive (${packing}), which is not read: unpack it, and give a file or the folder`,
    );
  throw inputError(
    `${name} is compressed with ${packing}, which is not read: unpack it first, as in ${program} -dk FILE`,
  );
}
