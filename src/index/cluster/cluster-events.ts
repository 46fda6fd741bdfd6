/** Called when something happens at a node that its operator wants to see. */
export interface ClusterEvents {
  /** A look at the catalog found an open index this many commits behind. */
  looked(commitsBehind: number): void;
  /** An index has everything that the catalog had when this node asked. `isFirst`: it had nothing before. */
  caughtUp(seconds: number, isFirst: boolean): void;
  /** `refused`: another node has the turn to merge. */
  lease(event: LeaseEvent): void;
  /** This many upserts shared a transaction. */
  committed(upserts: number): void;
}

export type LeaseEvent = 'taken' | 'refused' | 'renewed' | 'lost';
