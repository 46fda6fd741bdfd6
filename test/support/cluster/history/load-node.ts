/** A node as clients of the load see it. */
import type { CallKind, CallOf, NodeAnswers } from './node-calls.ts';

export interface LoadNode {
  readonly isUp: boolean;
  /** It does not answer just now: only some go there. */
  readonly isStalled: boolean;
  /** Grows with each start, which comes after the database has ended the connections of the life before. */
  readonly life: number;
  /** Rejects with `Refused` or `NodeGone`. */
  call<Kind extends CallKind>(call: CallOf<Kind>): Promise<NodeAnswers[Kind]>;
}

export class NodeGone extends Error {}

/** The node refused a call. */
export class Refused extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(`${code}: ${message}`);
    this.code = code;
  }
}

/** A node that can be killed. */
export interface MortalNode {
  readonly isUp: boolean;
  /** What its connections to the database are called. */
  readonly name: string;
  /** SIGKILL; resolves when the process has ended. */
  kill(): Promise<void>;
  loseDisk(): Promise<void>;
  start(): Promise<void>;
}
