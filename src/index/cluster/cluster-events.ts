/** What happens at a node that its operator wants to see: plain functions, called on the way. */
export interface ClusterEvents {
  /** A look at the catalog found an open index so many commits behind. */
  looked(commitsBehind: number): void;
  /** An index has everything that the catalog had when it asked. `isFirst`: it had nothing before. */
  caughtUp(seconds: number, isFirst: boolean): void;
  /** What became of a turn to merge an index; `refused`: another node has it. */
  lease(event: LeaseEvent): void;
  /** So many upserts shared a transaction. */
  committed(upserts: number): void;
}

export type LeaseEvent = 'taken' | 'refused' | 'renewed' | 'lost';
