/** Nodes as the clients of the battery call them. */
import type { CallKind, CallOf, NodeAnswers } from './node-calls.ts';

export interface LoadNode {
  readonly isUp: boolean;
  /** The node does not answer at present. Only some clients send requests to it. */
  readonly isStalled: boolean;
  /** Counts the starts. A node starts only after the database has ended the connections of its last process. */
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
  /** The name of its connections in the database (`application_name`). */
  readonly name: string;
  /** Sends SIGKILL. Resolves when the process has ended. */
  kill(): Promise<void>;
  loseDisk(): Promise<void>;
  start(): Promise<void>;
}
