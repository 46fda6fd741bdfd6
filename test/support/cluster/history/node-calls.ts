/** What the driver asks of a node process, and what that answers, as messages between the two. */

export interface TestDocument {
  readonly docId: string;
  readonly version: number;
  readonly text: string;
}

/** By kind of call. */
export interface NodeAsks {
  upsert: { readonly documents: readonly TestDocument[] };
  remove: { readonly docId: string };
  search: { readonly documents?: never };
  /** Takes a slot for so long and does nothing. */
  hold: { readonly ms: number };
}

export type CallKind = keyof NodeAsks;

export type CallOf<Kind extends CallKind> = NodeAsks[Kind] & {
  readonly kind: Kind;
  readonly apiKey: string;
  readonly indexId: string;
};

export type NodeCall = { [Kind in CallKind]: CallOf<Kind> }[CallKind];

/** A search: document ids with their versions; a hold: from when to when, by the machine's steady clock. */
export interface NodeAnswers {
  upsert: true;
  remove: boolean;
  search: readonly (readonly [string, number])[];
  hold: readonly [number, number];
}

export type ToNode =
  | { readonly id: number; readonly call: NodeCall }
  /** Stop yourself (SIGSTOP) before the next swap of merged segments, or do not after all. */
  | { readonly sleepAtSwap: boolean };

export type FromNode =
  | { readonly ready: true }
  | { readonly asleep: true }
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly code: string; readonly message: string }
  /** Work in the background failed. */
  | { readonly job: string; readonly message: string };
