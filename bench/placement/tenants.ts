/**
 * Tenants of one index each. How often each is searched follows Zipf's law; how large its index is, a log-normal
 * distribution. The two are independent, and so is each request of the one before it.
 */
import { firstAbove } from '../lib/binary-search.ts';

export interface TenantOptions {
  readonly tenants: number;
  /** Zipf's exponent: the tenant of rank r is searched in proportion to r to the power of minus this. */
  readonly skew: number;
  readonly meanChunks: number;
  /** Standard deviation of the logarithm of the number of chunks. */
  readonly sigma: number;
  readonly random: () => number;
}

export interface Tenants {
  readonly count: number;
  /** Bytes of the objects of each index. */
  readonly bytes: Float64Array;
  /** Objects that a node without any of them gets. */
  readonly objects: Uint8Array;
  /** The tenant of the next request. */
  next(): number;
}

/** Token vectors of a chunk, and bytes of disk of each of them with its codes (docs/benchmarks/large.md). */
export const chunkTokenVectors = 48;
export const tokenVectorBytes = 152.1;

/** As `defaultIndexSettings` of the program has them. */
const segmentTokenVectors = 131_072;
const codesTokenVectorsMin = 32_768;
const sealedSegmentsMax = 8;

export function createTenants(options: TenantOptions): Tenants {
  const { tenants: count, skew, meanChunks, sigma, random } = options;
  // The mean of a log-normal distribution is that of its logarithm and half its variance.
  const mu = Math.log(meanChunks) - sigma ** 2 / 2;
  const bytes = new Float64Array(count);
  const objects = new Uint8Array(count);
  const shares = new Float64Array(count);
  let total = 0;
  for (let tenant = 0; tenant < count; tenant += 1) {
    const chunks = Math.max(1, Math.exp(mu + sigma * normal(random)));
    bytes[tenant] = chunks * chunkTokenVectors * tokenVectorBytes;
    objects[tenant] = objectsOf(chunks * chunkTokenVectors);
    total += (tenant + 1) ** -skew;
    shares[tenant] = total;
  }
  return { count, bytes, objects, next: () => firstAbove(shares, random() * total) };
}

/** A segment, its codes and its postings, and one codebook; a small segment has nothing derived. */
export function objectsOf(tokenVectors: number): number {
  if (tokenVectors < codesTokenVectorsMin) return 1;
  const segments = Math.min(sealedSegmentsMax, Math.ceil(tokenVectors / segmentTokenVectors));
  return 3 * segments + 1;
}

/** Box and Muller. */
function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}
