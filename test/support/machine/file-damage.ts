/** Random damage of a file's bytes, as disks and file systems do it. */
import type { Random } from '../running/random.ts';

export interface Damaged {
  readonly what: string;
  readonly bytes: Buffer;
}

export const pageBytes = 4096;
const blockSizes = [64, 512, pageBytes];

/** Damages a file: flipped bits, a page of zeros, a lost end, or two swapped blocks. The bytes always differ afterwards. */
export function damage(random: Random, intact: Buffer): Damaged {
  const kinds = [flip, zeroPage, cut, swap];
  for (;;) {
    const bytes = Buffer.from(intact);
    const damaged = random.pick(kinds)(random, bytes);
    if (!damaged.bytes.equals(intact)) return damaged;
  }
}

/** Cuts whole pages off, as a failing disk does. Within the last page the kernel returns zeros for bytes that were checked before. */
export function cutPages(random: Random, intact: Buffer): Damaged {
  const pages = random.integer(0, Math.ceil(intact.length / pageBytes) - 1);
  return { what: `cut to ${pages} pages`, bytes: intact.subarray(0, pages * pageBytes) };
}

function flip(random: Random, bytes: Buffer): Damaged {
  const places = Array.from({ length: random.pick([1, 1, 1, 2, 8]) }, () =>
    random.integer(0, 8 * bytes.length - 1),
  );
  for (const place of places) bytes[place >> 3]! ^= 1 << (place & 7);
  return { what: `bits ${places.join()} flipped`, bytes };
}

function zeroPage(random: Random, bytes: Buffer): Damaged {
  const at = random.integer(0, Math.ceil(bytes.length / pageBytes) - 1) * pageBytes;
  bytes.subarray(at, at + pageBytes).fill(0);
  return { what: `page at ${at} zeroed`, bytes };
}

function cut(random: Random, bytes: Buffer): Damaged {
  const whole = random.integer(0, bytes.length - 1);
  const length = random.pick([whole, whole - (whole % 64), whole - (whole % pageBytes)]);
  return { what: `cut to ${length} bytes`, bytes: bytes.subarray(0, length) };
}

function swap(random: Random, bytes: Buffer): Damaged {
  const size = random.pick(blockSizes);
  const blocks = Math.max(1, Math.floor(bytes.length / size));
  const [a, b] = [random.integer(0, blocks - 1) * size, random.integer(0, blocks - 1) * size];
  const block = Buffer.from(bytes.subarray(a, a + size));
  bytes.copyWithin(a, b, b + size);
  block.copy(bytes, b);
  return { what: `blocks of ${size} bytes at ${a} and ${b} swapped`, bytes };
}
