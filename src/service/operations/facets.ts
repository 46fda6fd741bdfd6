/**
 * Counts the values of metadata fields over the documents that match. The engine finds the documents. Their metadata are read
 * from the catalog in parts, in turn with the lists and counts of all tenants, on one snapshot.
 */
import { setImmediate } from 'node:timers/promises';
import { invalid, type ServiceError } from '../../errors.ts';
import { metadataInParts } from '../../index/segments/metadata-parts.ts';
import { canonicalMembers } from '../../index/terms/canonical-json.ts';
import { ValueCounts } from '../../index/terms/value-counts.ts';
import type { FacetRequest, Facets, RequestContext } from '../contract.ts';
import { readingWork } from '../limits/work.ts';
import { assertWanted, pieceOf, type OperationDeps } from '../operation-deps.ts';
import { hintFor } from './hints.ts';
import { withMatching } from './read-index.ts';
import { filtersFor } from './search.ts';

/** Distinct values of a field. */
export const facetValuesMax = 100_000;
/** Characters of the distinct values of all fields of a request together. */
const facetCharactersMax = 16 * 1024 * 1024;
/** Bytes that a part of the metadata is estimated to have. */
const partBytes = 1024 * 1024;
/** After so many characters other requests have their turn. */
const charactersInTurn = 64 * 1024;

export async function countValues(
  deps: OperationDeps,
  context: RequestContext,
  indexId: string,
  { fields, limit, ...wanted }: FacetRequest,
): Promise<Facets> {
  return await withMatching(deps, context, indexId, filtersFor(wanted, ''), (versionIds, reader) => {
    const piece = pieceOf(context, readingWork({ rows: versionIds.length, bytes: 0 }));
    return deps.countQueue.run(context.tenant.id, piece, async () => {
      const counter = new FieldCounter(fields);
      const documents = await countAll(deps, context, indexId, { versionIds, counter });
      const hint = await hintFor(deps, context, reader, { ...wanted, found: documents });
      return { documents, facets: await counter.facets(limit), ...hint };
    });
  });
}

/** Returns the number of documents. */
async function countAll(
  { catalog, expiry, scanQueue, nowMs }: OperationDeps,
  context: RequestContext,
  indexId: string,
  { versionIds, counter }: { readonly versionIds: Float64Array; readonly counter: FieldCounter },
): Promise<number> {
  const read = (wanted: readonly number[]) => {
    assertWanted(context, nowMs());
    const work = readingWork({ rows: wanted.length, bytes: partBytes });
    return scanQueue.run(context.tenant.id, pieceOf(context, work), () =>
      catalog.readMetadata(indexId, wanted),
    );
  };
  let documents = 0;
  let characters = 0;
  for await (const { versions } of metadataInParts(versionIds, read)) {
    for (const version of versions) {
      if (expiry.hasExpired(version)) continue;
      counter.add(version.metadata);
      documents += 1;
      characters += version.metadata.length;
      if (characters < charactersInTurn) continue;
      characters = 0;
      await setImmediate();
    }
  }
  return documents;
}

class FieldCounter {
  readonly #fields: readonly { readonly name: string; readonly key: string; readonly counts: ValueCounts }[];
  #characters = 0;

  constructor(fields: readonly string[]) {
    this.#fields = fields.map((name) => ({ name, key: JSON.stringify(name), counts: new ValueCounts() }));
  }

  /** @throws {ServiceError} `validation_error` when a field has too many values. */
  add(metadata: string): void {
    const members = canonicalMembers(metadata);
    for (const [place, { name, key, counts }] of this.#fields.entries()) {
      const value = members.get(key);
      if (value === undefined) continue;
      this.#characters += counts.add(value);
      if (counts.distinct > facetValuesMax || this.#characters > facetCharactersMax) {
        throw tooManyValues(name, place);
      }
    }
  }

  async facets(limit: number): Promise<Facets['facets']> {
    const facets: Facets['facets'][number][] = [];
    for (const { name, counts } of this.#fields) {
      facets.push({ field: name, distinct: counts.distinct, values: await counts.mostFrequent(limit) });
    }
    return facets;
  }
}

function tooManyValues(name: string, place: number): ServiceError {
  const message = `the matching documents have more than ${facetValuesMax} values of ${JSON.stringify(name)}, or too long ones`;
  return invalid(`fields.${place}`, message, 'too_many_values');
}
