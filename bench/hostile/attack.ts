/** An attack is one entry {name, tenants, run} of the list in attacks.ts. The helpers are for several of them. */

export interface Attacker {
  readonly url: string;
  readonly apiKey: string;
  readonly indexId: string;
  /**
   * Sends a body as it is, a GET without one, and gives the status, 0 where there is none: the caller leaves after `leaveMs`
   * without an answer.
   */
  send(path: string, body?: string | Buffer, leaveMs?: number): Promise<number>;
  /** Likewise, and gives the text of the answer. */
  ask(path: string, body?: string | Buffer): Promise<string>;
}

export type Attackers = readonly [Attacker, ...Attacker[]];

export interface Attack {
  readonly name: string;
  readonly what: string;
  /** How many tenants attack together. */
  readonly tenants: number;
  /** Stores what the attack needs, before the clock starts. */
  prepare?(attackers: Attackers): Promise<void>;
  /** Resolves with the statuses of the answers. It is called again until the time is up; `until` aborts then. */
  run(attackers: Attackers, until: AbortSignal): Promise<readonly number[]>;
}

export const bodyBytesMax = 5 << 20;

export function documentsOf({ indexId }: Attacker): string {
  return `/v1/indexes/${indexId}/documents`;
}

export function searchOf({ indexId }: Attacker): string {
  return `/v1/indexes/${indexId}/search`;
}

export function numbers(count: number): readonly number[] {
  return Array.from({ length: count }, (_, n) => n);
}

export async function inTurn<T>(works: readonly (() => Promise<T>)[]): Promise<readonly T[]> {
  const results: T[] = [];
  for (const work of works) results.push(await work());
  return results;
}
