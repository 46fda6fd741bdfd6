/** Pages of lists: their length, and the place at which they begin. */
import { z } from 'zod';
import { pageItemsMax } from '../limits.ts';
import { addIssue } from './fields.ts';

export const pageItemsDefault = 100;

/** The end of a page in a list that is ordered by creation. */
export interface CreationPlace {
  readonly createdAtMs: number;
  readonly id: string;
}

export const Limit = z.coerce
  .number({ error: `must be a whole number from 1 to ${pageItemsMax}` })
  .int()
  .min(1)
  .max(pageItemsMax)
  .optional()
  .meta({ description: `Items per page at most. Default ${pageItemsDefault}.` });

const description = '`next_cursor` of the page before. Absent: the first page.';

/** The place at which a page ended. The text means nothing to the client. */
const Cursor = z.string().transform((text, context) => {
  const place = Buffer.from(text, 'base64url').toString();
  if (place !== '' && cursorOf(place) === text) return place;
  return refuse(context);
});

export const DocumentCursor = Cursor.optional().meta({ description });

export const CreationCursor = Cursor.transform((place, context): CreationPlace => {
  const [, createdAtMs, id] = /^(\d{1,15}) ([0-9a-f-]{36})$/.exec(place) ?? [];
  if (createdAtMs === undefined || id === undefined) return refuse(context);
  return { createdAtMs: Number(createdAtMs), id };
})
  .optional()
  .meta({ description });

/** For a list in descending order of numbers. */
export const NumberCursor = Cursor.transform((place, context): number =>
  /^\d{1,15}$/.test(place) ? Number(place) : refuse(context),
)
  .optional()
  .meta({ description });

export const NextCursor = z
  .string()
  .nullable()
  .meta({ description: 'Send it as `cursor` to get the next page. Null on the last page.' });

export function cursorOf(place: string): string {
  return Buffer.from(place).toString('base64url');
}

export function creationPlaceText({ createdAtMs, id }: CreationPlace): string {
  return `${createdAtMs} ${id}`;
}

function refuse(context: z.core.$RefinementCtx): never {
  addIssue(context, 'invalid_cursor', 'must be a `next_cursor` of this list');
  return z.NEVER;
}
