/** Lists in pages: how many items, and from where. */
import { z } from 'zod';
import type { IndexPlace } from '../../catalog/contract.ts';
import { pageItemsMax } from '../limits.ts';
import { addIssue } from './fields.ts';

export const pageItemsDefault = 100;

export const Limit = z.coerce
  .number()
  .int()
  .min(1)
  .max(pageItemsMax)
  .optional()
  .meta({ description: `Items of a page, at most. Default ${pageItemsDefault}.` });

const description = '`next_cursor` of the page before. Absent: from the beginning.';

/** The place that a page ended at: text of ours that means nothing to the client. */
const Cursor = z.string().transform((text, context) => {
  const place = Buffer.from(text, 'base64url').toString();
  if (place !== '' && cursorOf(place) === text) return place;
  return refuse(context);
});

export const DocumentCursor = Cursor.optional().meta({ description });

export const IndexCursor = Cursor.transform((place, context): IndexPlace => {
  const [, createdAtMs, id] = /^(\d{1,15}) ([0-9a-f-]{36})$/.exec(place) ?? [];
  if (createdAtMs === undefined || id === undefined) return refuse(context);
  return { createdAtMs: Number(createdAtMs), id };
})
  .optional()
  .meta({ description });

export const NextCursor = z
  .string()
  .nullable()
  .meta({ description: 'What the next page is asked for with; null: there is none.' });

export function cursorOf(place: string): string {
  return Buffer.from(place).toString('base64url');
}

export function indexPlaceText({ createdAtMs, id }: IndexPlace): string {
  return `${createdAtMs} ${id}`;
}

function refuse(context: z.core.$RefinementCtx): never {
  addIssue(context, 'invalid_cursor', 'must be a `next_cursor` of this list');
  return z.NEVER;
}
