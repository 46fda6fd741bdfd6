/** The pages of a list that goes on at a cursor. */
import { useState } from 'preact/hooks';

export interface PagesState {
  /** Of the page that is shown; `undefined` = the first. */
  readonly cursor: string | undefined;
  readonly previous: () => void;
  readonly next: (cursor: string) => void;
  readonly first: () => void;
}

export function usePages(): PagesState {
  const [cursors, setCursors] = useState<readonly string[]>([]);
  return {
    cursor: cursors.at(-1),
    previous: () => setCursors(cursors.slice(0, -1)),
    next: (cursor) => setCursors([...cursors, cursor]),
    first: () => setCursors([]),
  };
}

export function Pages({ of: { cursor, previous, next }, next: following }: PagesProps) {
  return (
    <div class="row">
      {cursor !== undefined && (
        <button type="button" onClick={previous}>
          Previous
        </button>
      )}
      {typeof following === 'string' && (
        <button type="button" onClick={() => next(following)}>
          Next
        </button>
      )}
    </div>
  );
}

interface PagesProps {
  readonly of: PagesState;
  /** The cursor of the next page, once the answer is there. */
  readonly next: string | null | undefined;
}
