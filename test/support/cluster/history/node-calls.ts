/** Messages between the driver of the battery and a node process: calls and their answers. */

export interface TestDocument {
  readonly docId: string;
  readonly version: number;
  readonly text: string;
}

/** The arguments of each kind of call. */
export interface NodeAsks {
  upsert: { readonly documents: readonly TestDocument[] };
  remove: { readonly docId: string };
  search: { readonly documents?: never };
  /** Takes a slot for this time and does nothing else. */
  hold: { readonly ms: number };
}

export type CallKind = keyof NodeAsks;

export type CallOf<Kind extends CallKind> = NodeAsks[Kind] & {
  readonly kind: Kind;
  readonly apiKey: string;
  readonly indexId: string;
};

export type NodeCall = { [Kind in CallKind]: CallOf<Kind> }[CallKind];

/** Values of the answers. A search gives document ids with versions. A hold gives its begin and end, by the steady clock. */
export interface NodeAnswers {
  upsert: true;
  remove: boolean;
  search: readonly (readonly [string, number])[];
  hold: readonly [number, number];
}

export type ToNode =
  | { readonly id: number; readonly call: NodeCall }
  /** True = the node sends itself SIGSTOP before it next swaps merged segments. False = it does not. */
  | { readonly sleepAtSwap: boolean };

export type FromNode =
  | { readonly ready: true }
  | { readonly asleep: true }
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly code: string; readonly message: string }
  /** A job in the background failed. */
  | { readonly job: string; readonly message: string };
