/** Results as the caller wants to see them: with the passages that were found, and with some fields of the metadata alone. */
import type { EncodedQuery } from '../../encoder/protocol/contract.ts';
import type { Passage, RequestContext, ResultItem, ScoreRequest, SearchRequest } from '../contract.ts';
import { assertWanted, timed, type OperationDeps } from '../operation-deps.ts';
import { takingTurns } from '../limits/turns.ts';
import { stringField, withFieldsAlone } from './metadata-text.ts';
import { locatedQuery, passageOf, placedText, type LocatedQuery, type PlacedText } from './passage.ts';

/** For `score` the text is the one that was submitted, and all metadata are shown. */
export interface Showing extends Pick<SearchRequest, 'query' | 'returnComponents' | 'fields'> {
  readonly passage?: SearchRequest['passage'] | ScoreRequest['passage'];
}

/** Whether highlights are wanted. They need the words of the query's rows, which an encoder tells when it is asked. */
export function wantsHighlights({ passage, returnComponents }: Showing): boolean {
  return passage !== undefined && returnComponents;
}

/** `textOf`: the text of a result's document; `undefined` where there is none. */
export async function shownResults(
  { nowMs }: Pick<OperationDeps, 'nowMs'>,
  context: RequestContext,
  results: readonly ResultItem[],
  shown: Showing & {
    readonly spans: EncodedQuery['spans'];
    readonly textOf: (result: ResultItem) => string | undefined;
  },
): Promise<readonly ResultItem[]> {
  const { passage, fields } = shown;
  if (passage === undefined && fields === undefined) return results;
  const query = shown.spans && locatedQuery(shown.query, shown.spans);
  const names = fields?.map((field) => JSON.stringify(field));
  // Chunks of a document share its metadata.
  const metadataOf = remembered(({ metadata }) =>
    names === undefined ? metadata : withFieldsAlone(metadata, names),
  );
  const placedTextOf = remembered((result) => {
    const text = shown.textOf(result);
    return text === undefined ? undefined : placedText(text);
  });
  const giveWay = takingTurns();
  return await timed(context, 'passages', async () => {
    const items: ResultItem[] = [];
    for (const result of results) {
      await giveWay();
      assertWanted(context, nowMs());
      items.push({
        ...result,
        metadata: metadataOf(result),
        ...(passage === undefined
          ? {}
          : { passage: passageIn(placedTextOf(result), result, { context: passage.context, query }) }),
      });
    }
    return items;
  });
}

/** The text is in a field of the metadata. */
export function textInField({
  passage,
}: Pick<SearchRequest, 'passage'>): (result: ResultItem) => string | undefined {
  const from = passage?.from;
  return ({ metadata }) => (from === undefined ? undefined : stringField(metadata, from));
}

function passageIn(
  placed: PlacedText | undefined,
  { textRange, components }: ResultItem,
  cut: { readonly context: number; readonly query: LocatedQuery | undefined },
): Passage | null {
  if (placed === undefined || textRange === undefined) return null;
  return passageOf(placed, { ...cut, range: textRange, components }) ?? null;
}

/** One answer has one version of a document, so its id tells it from the others. */
function remembered<T>(valueOf: (result: ResultItem) => T): (result: ResultItem) => T {
  const known = new Map<string, { readonly value: T }>();
  return (result) => {
    let found = known.get(result.docId);
    if (found === undefined) known.set(result.docId, (found = { value: valueOf(result) }));
    return found.value;
  };
}
