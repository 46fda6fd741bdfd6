/** The parts of the served OpenAPI document that tests read. */
import { z } from 'zod';

import { call } from './client.ts';

const operation = z.looseObject({ responses: z.record(z.string(), z.unknown()) });

const document = z.looseObject({
  openapi: z.string(),
  info: z.looseObject({ title: z.string(), version: z.string() }),
  paths: z.record(z.string(), z.record(z.string(), operation)),
});
export type OpenApiDocument = z.output<typeof document>;

export async function readOpenApi(url: string): Promise<OpenApiDocument> {
  return parseOpenApi((await call(`${url}/openapi.json`)).body);
}

export function parseOpenApi(body: unknown): OpenApiDocument {
  return document.parse(body);
}
