/**
 * Counts the values of metadata fields over the documents that match. The engine counts. It keeps no more than the beginning of a
 * long value, so the few that an answer shows are read from the catalog.
 */
import { setImmediate } from 'node:timers/promises';
import { assertInvariant, invalid, type ServiceError } from '../../errors.ts';
import type { IndexReader } from '../../index/contract.ts';
import type { ValueCounts } from '../../index/engine/native.ts';
import { metadataInParts, partCharactersMax } from '../../index/segments/metadata-parts.ts';
import { plainNumber } from '../../index/terms/canonical-json.ts';
import type { FacetRequest, Facets, RequestContext } from '../contract.ts';
import { readingWork } from '../limits/work.ts';
import { askerOf, assertWanted, pieceOf, timed, timeLeftMs, type OperationDeps } from '../operation-deps.ts';
import { hintFor } from '../hints/hints.ts';
import { readableIndex } from './read-index.ts';
import { filtersFor } from './search.ts';
import { endExpired } from './unexpired.ts';

/** Distinct values of a field. */
export const facetValuesMax = 100_000;
/** Bytes of the distinct values of all fields of a request together. */
const facetBytesMax = 16 * 1024 * 1024;

export async function countValues(
  deps: OperationDeps,
  context: RequestContext,
  indexId: string,
  { fields, limit, ...wanted }: FacetRequest,
): Promise<Facets> {
  const filters = filtersFor(wanted, '');
  const names = fields.map((field) => JSON.stringify(field));
  const { row, read } = await readableIndex(deps, context, indexId);
  await endExpired(deps, context, row);
  return await read(async (reader) => {
    const counting = {
      ...filters,
      fields: names,
      limit,
      distinctMax: facetValuesMax,
      bytesMax: facetBytesMax,
      timeoutMs: timeLeftMs(context, deps.nowMs()),
    };
    const counted = await timed(context, 'engine', () =>
      reader.countValues(counting, askerOf(deps, context)),
    );
    const { documents, tooMany } = counted;
    if (tooMany !== undefined) throw tooManyValues(fields[tooMany] ?? '', tooMany);
    const long = await longValues(deps, context, { indexId: row.id, reader, names, facets: counted.facets });
    const facets = counted.facets.map(({ distinct, tokens, counts }, place) => ({
      field: fields[place] ?? '',
      distinct,
      values: Array.from(counts, (count, value) => ({
        value: plainNumber(tokens[value] ?? long.get(`${place}.${value}`) ?? 'null'),
        count,
      })),
    }));
    return {
      documents,
      facets,
      ...(await hintFor(deps, context, reader, { ...wanted, indexId, found: documents })),
    };
  });
}

interface CountedFields {
  readonly indexId: string;
  readonly reader: IndexReader;
  readonly names: readonly string[];
  readonly facets: readonly ValueCounts[];
}

/** The values of which the engine has no token, by the places of the field and of the value (`1.0`). */
async function longValues(
  { catalog, scanQueue, nowMs }: OperationDeps,
  context: RequestContext,
  { indexId, reader, names, facets }: CountedFields,
): Promise<ReadonlyMap<string, string>> {
  const wanted = facets.flatMap(({ keys, versionIds }, field) =>
    Array.from(versionIds, (versionId, value) => ({ versionId, field, value, key: keys[value] })),
  );
  const long = wanted.flatMap(({ key, ...place }) => (key === undefined ? [] : [{ ...place, key }]));
  const read = (versionIds: readonly number[]) => {
    assertWanted(context, nowMs());
    const work = readingWork({ rows: versionIds.length, bytes: partCharactersMax });
    return scanQueue.run(context.tenant.id, pieceOf(context, work), () =>
      catalog.readMetadata(indexId, versionIds),
    );
  };
  const values = new Map<string, string>();
  const versionIds = Float64Array.from(long, ({ versionId }) => versionId);
  for await (const { first, versions } of metadataInParts(versionIds, read)) {
    for (const [row, { metadata }] of versions.entries()) {
      const { field, value, key } = long[first + row]!;
      const token = reader.findValue(metadata, names[field]!, key);
      assertInvariant(token !== undefined, 'a document has no value that was counted for it');
      values.set(`${field}.${value}`, token);
      await setImmediate();
    }
  }
  return values;
}

function tooManyValues(name: string, place: number): ServiceError {
  const message = `the matching documents have more than ${facetValuesMax} values of ${JSON.stringify(name)}, or too long ones`;
  return invalid(`fields.${place}`, message, 'too_many_values');
}
