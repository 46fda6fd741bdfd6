/**
 * Lists the operations under `/v1` and `/v2` of a served OpenAPI document, with its example bodies. Tests of rules that hold for
 * every route go through this list, so they also cover routes that are added later.
 */
import { z } from 'zod';

import type { OpenApiDocument } from './openapi.ts';

export interface Route {
  readonly name: string;
  readonly method: string;
  /** The path, with its parameters in braces. */
  readonly path: string;
  readonly parameters: readonly string[];
  /** Example bodies: none if the operation takes no body, else at least one. */
  readonly examples: readonly unknown[];
}

const withBody = z.looseObject({
  requestBody: z
    .looseObject({
      content: z.record(
        z.string(),
        z.looseObject({ examples: z.record(z.string(), z.looseObject({ value: z.unknown() })).optional() }),
      ),
    })
    .optional(),
});

export function routesOf({ paths }: OpenApiDocument): readonly Route[] {
  return Object.entries(paths)
    .filter(([path]) => /^\/v[12]\//.test(path))
    .flatMap(([path, operations]) =>
      Object.entries(operations).map(([method, operation]) => {
        const name = `${method.toUpperCase()} ${path}`;
        const { requestBody } = withBody.parse(operation);
        const examples = Object.values(requestBody?.content['application/json']?.examples ?? {});
        if (requestBody !== undefined && examples.length === 0)
          throw new Error(`${name} takes a body and shows no example of it`);
        return {
          name,
          method: method.toUpperCase(),
          path,
          parameters: [...path.matchAll(/\{(\w+)\}/g)].map(([, parameter = '']) => parameter),
          examples: examples.map(({ value }) => value),
        };
      }),
    );
}

/** The path with these values in place of its parameters. Throws if a parameter has no value. */
export function addressOf(route: Route, values: Readonly<Record<string, string>>): string {
  return route.path.replaceAll(/\{(\w+)\}/g, (_, parameter: string) => {
    const value = values[parameter];
    if (value === undefined) throw new Error(`${route.name}: no value is known for {${parameter}}`);
    return encodeURIComponent(value);
  });
}
