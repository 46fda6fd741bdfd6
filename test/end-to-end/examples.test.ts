/** Sends every request that the interactive page offers, as it stands there, to a real server. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { call } from '../support/running/client.ts';
import { useSharedStage } from '../support/running/stage.ts';

const stage = useSharedStage();

const operationSchema = z.object({
  operationId: z.string(),
  parameters: z
    .array(z.object({ name: z.string(), schema: z.object({ example: z.string().optional() }) }))
    .default([]),
  requestBody: z
    .object({
      content: z.object({
        'application/json': z.object({ examples: z.record(z.string(), z.object({ value: z.unknown() })) }),
      }),
    })
    .optional(),
});
const documentSchema = z.object({ paths: z.record(z.string(), z.record(z.string(), operationSchema)) });

/** The index is made before it is used, and removed last. */
const order = [
  'createIndex',
  'upsertDocuments',
  'search',
  'score',
  'getIndex',
  'getDocument',
  'updateDocument',
  'deleteDocument',
];

test('every example of the document succeeds', async () => {
  const { body } = await call(`${stage.server.url}/openapi.json`);
  const operations = Object.entries(documentSchema.parse(body).paths)
    .flatMap(([path, item]) =>
      Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
    )
    .toSorted((one, other) => place(one.operation.operationId) - place(other.operation.operationId));
  let indexId = '';
  const sent: string[] = [];
  for (const { path, method, operation } of operations) {
    const examples = operation.requestBody?.content['application/json'].examples ?? { none: undefined };
    for (const [name, example] of Object.entries(examples)) {
      const filled = operation.parameters.reduce(
        (route, { name: parameter, schema }) =>
          route.replace(`{${parameter}}`, parameter === 'index_id' ? indexId : (schema.example ?? '')),
        path,
      );
      const options = example === undefined ? {} : { body: example.value };
      const answer = await stage.client.send(method.toUpperCase(), filled, options);
      expect([operation.operationId, name, answer.text, answer.status < 300]).toEqual([
        operation.operationId,
        name,
        answer.text,
        true,
      ]);
      sent.push(operation.operationId);
      if (operation.operationId === 'createIndex' && indexId === '')
        indexId = (answer.body as { readonly id: string }).id;
      // The example of a later page leaves out more results than there are.
      if (['search', 'score'].includes(operation.operationId) && !name.includes('page'))
        expect((answer.body as { readonly results: readonly unknown[] }).results.length).toBeGreaterThan(0);
      if (operation.operationId === 'deleteDocument') expect(answer.body).toEqual({ deleted: true });
    }
  }
  expect(new Set(sent)).toEqual(new Set(operations.map(({ operation }) => operation.operationId)));
  expect(sent.length).toBeGreaterThan(operations.length);
});

/** The position of an operation in the run. Operations without a named position come in between; deleting the index is last. */
function place(operationId: string): number {
  if (operationId === 'deleteIndex') return order.length + 1;
  return order.includes(operationId) ? order.indexOf(operationId) : order.length;
}
