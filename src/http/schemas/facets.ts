/** The request and the answer of counts by value. */
import { z } from 'zod';
import { facetValuesMax } from '../limits.ts';
import { Count, FieldNames } from './fields.ts';
import { Filter, Hint, Where } from './ranking.ts';

export const facetValuesDefault = 10;

export const FacetsBody = z
  .strictObject({
    fields: FieldNames.min(1),
    filter: Filter,
    where: Where,
    limit: z
      .int()
      .min(1)
      .max(facetValuesMax)
      .optional()
      .meta({ description: `Values of each field at most. Default ${facetValuesDefault}.` }),
  })
  .meta({ id: 'FacetsRequest' });

const FacetValue = z
  .strictObject({
    value: z.unknown().meta({ description: 'Any JSON value. Numbers that are equal are one value.' }),
    count: Count.meta({ description: 'Documents with this value.' }),
  })
  .meta({ id: 'FacetValue' });

const Facet = z
  .strictObject({
    field: z.string(),
    distinct: Count.meta({ description: 'Distinct values of the field.' }),
    values: z.array(FacetValue).meta({
      description:
        'The most frequent first. Of equal counts numbers come first, in order, then strings by their code points.',
    }),
  })
  .meta({ id: 'Facet' });

export const FacetsAnswer = z
  .strictObject({
    documents: Count.meta({ description: 'Documents that match.' }),
    facets: z.array(Facet).meta({ description: 'In the order of the fields.' }),
    hint: Hint,
  })
  .meta({ id: 'Facets', description: 'Counts at the moment of the request.' });
