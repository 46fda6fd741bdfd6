/**
 * Messages between the catalog and its threads. A request carries a number that its reply repeats. The replies of a group of
 * commits come in one message.
 */
import type { Failure } from '../../../errors.ts';

export interface ThreadRequest {
  readonly kind: 'request';
  readonly number: number;
  readonly operation: string;
  /** The arguments of the operation. */
  readonly input: readonly unknown[];
}

export type ThreadMessage = ThreadRequest | { readonly kind: 'finish' };

export type ThreadEvent =
  /** The thread has opened its file. */
  | { readonly kind: 'opened' }
  | { readonly kind: 'replies'; readonly replies: readonly ThreadReply[] }
  /** Work in the background has failed and will be tried again. */
  | { readonly kind: 'background_failure'; readonly failure: Failure }
  /** Rows of an index are damaged in the file. */
  | { readonly kind: 'damaged_index'; readonly indexId: string; readonly failure: Failure };

export type ThreadReply =
  | { readonly number: number; readonly ok: true; readonly value: unknown }
  | { readonly number: number; readonly ok: false; readonly failure: Failure };
