/** The tools that an agent gets, with the client of one key. */
import { z } from 'zod';
import type { Maxsimd } from '../../../clients/typescript/src/client.ts';
import type { Result } from '../../../clients/typescript/src/types.ts';
import { findIndex } from '../client.ts';
import { CommandFailure } from '../failure.ts';
import { isObject } from '../json.ts';

export interface Tool {
  readonly description: string;
  readonly annotations: Readonly<Record<string, boolean>>;
  readonly input: z.ZodObject;
  /** The least that an answer holds. Agents check this. */
  readonly output: z.ZodObject;
  run(client: Maxsimd, args: unknown, signal: AbortSignal): Promise<object>;
}

function tool<Input extends z.ZodObject>(
  defined: Omit<Tool, 'run' | 'input'> & {
    readonly input: Input;
    readonly run: (client: Maxsimd, args: z.output<Input>, signal: AbortSignal) => Promise<object>;
  },
): Tool {
  return { ...defined, run: (client, args, signal) => defined.run(client, args as z.output<Input>, signal) };
}

const IndexName = z.string().min(1).describe('Name or id of the index.');
const DocId = z.string().min(1).describe('The `doc_id` of the document.');
/** Kept as it is, with keys of any name. */
const JsonObject = z.custom<Record<string, unknown>>(isObject, 'must be an object').meta({ type: 'object' });
const StoredDocument = z.object({ doc_id: z.string(), metadata: JsonObject, chunk_count: z.number() });
const OneDocument = z.strictObject({ index: IndexName, doc_id: DocId });

const reads = { readOnlyHint: true, openWorldHint: false };
const writes = {
  readOnlyHint: false,
  idempotentHint: true,
  destructiveHint: true,
  openWorldHint: false,
};

export const readTools: Readonly<Record<string, Tool>> = {
  list_indexes: tool({
    description:
      'Lists the indexes, oldest first. A search finds documents whose text in one of the `match_fields` stands in the query, such as a code or a part number.',
    annotations: reads,
    input: z.strictObject({}),
    output: z.object({ indexes: z.array(z.object({ id: z.string(), name: z.string() })) }),
    run: async (client, _nothing, signal) => ({ indexes: await client.listIndexes({ signal }) }),
  }),
  search: tool({
    description:
      'Finds the best chunks of an index for a question in plain words. A higher score is better; it has no fixed range. Words of the question that match a value of the `match_fields` of the index as a whole, such as a code, raise its documents.',
    annotations: reads,
    input: z.strictObject({
      index: IndexName,
      query: z.string().min(1),
      top_k: z.int().min(1).max(100).exactOptional().describe('Results at most. Default 10.'),
      offset: z.int().min(0).max(900).exactOptional().describe('Results to leave out first: the next page.'),
      filter: JsonObject.exactOptional().describe(
        'Metadata fields with the value that each must have, such as {"lang": "en"}.',
      ),
      where: JsonObject.exactOptional().describe(
        'Conditions on metadata fields, such as {"lang": "en", "year": {"gte": 2020}, "kind": {"in": ["a", "b"]}, "author.name": {"starts_with": "A"}}.',
      ),
      group_by_document: z.boolean().exactOptional().describe('Only the best chunk of each document.'),
      min_score: z
        .number()
        .min(0)
        .max(1)
        .exactOptional()
        .describe('Results with a lower normalized_score are left out.'),
      explain: z
        .boolean()
        .exactOptional()
        .describe(
          'Adds to each result `maxsim`, and `matches`: the values of `match_fields` that words of the query match, with their part of the score. At most 100 chunks: 10 results that are grouped.',
        ),
      text_field: z
        .string()
        .min(1)
        .max(255)
        .exactOptional()
        .describe(
          'Metadata field that holds the texts of documents. Default "text". Results have the passage that was found in place of this field.',
        ),
    }),
    output: z.object({
      results: z.array(
        z.object({
          doc_id: z.string(),
          score: z.number(),
          metadata: JsonObject,
          passage: z.object({ text: z.string() }).exactOptional(),
        }),
      ),
    }),
    run: async (client, { index, text_field: from = 'text', explain, ...asked }, signal) => {
      const search = { ...asked, passage: { from }, return_components: explain === true };
      const answer = await client.search(await idOf(client, index, signal), search, { signal });
      return { ...answer, results: answer.results.map((result) => explained(withoutText(result, from))) };
    },
  }),
  get_document: tool({
    description: 'Gets the metadata of a document, and its number of chunks.',
    annotations: reads,
    input: OneDocument,
    output: StoredDocument,
    run: async (client, { index, doc_id: docId }, signal) =>
      client.getDocument(await idOf(client, index, signal), docId, { signal }),
  }),
};

export const writeTools: Readonly<Record<string, Tool>> = {
  upsert_documents: tool({
    description:
      'Stores 1 to 50 documents. A `doc_id` that exists is replaced. Look at `failed` in the answer.',
    annotations: writes,
    input: z.strictObject({
      index: IndexName,
      documents: z
        .array(
          z.strictObject({ doc_id: DocId, text: z.string().min(1), metadata: JsonObject.exactOptional() }),
        )
        .min(1)
        .max(50),
    }),
    output: z.object({ upserted_documents: z.number(), failed: z.array(z.object({ doc_id: z.string() })) }),
    run: async (client, { index, documents }, signal) =>
      client.upsert(await idOf(client, index, signal), documents, { signal }),
  }),
  update_metadata: tool({
    description:
      'Merges fields into the metadata of one document (RFC 7396): null removes a field, an object merges into the stored object.',
    annotations: writes,
    input: z.strictObject({ index: IndexName, doc_id: DocId, metadata_merge: JsonObject }),
    output: StoredDocument,
    run: async (client, { index, doc_id: docId, metadata_merge: merge }, signal) =>
      client.mergeMetadata(await idOf(client, index, signal), docId, merge, { signal }),
  }),
  delete_document: tool({
    description: 'Deletes one document. For an absent one `deleted` is false.',
    annotations: writes,
    input: OneDocument,
    output: z.object({ deleted: z.boolean() }),
    run: async (client, { index, doc_id: docId }, signal) =>
      client.deleteDocument(await idOf(client, index, signal), docId, { signal }),
  }),
  delete_documents: tool({
    description:
      'Deletes the documents that match, at most 1,000 at once: call it again while `more` is true. With `dry_run` it deletes nothing, and `matching` is their number.',
    annotations: writes,
    input: z.strictObject({
      index: IndexName,
      filter: JsonObject.exactOptional().describe(
        'Metadata fields with the value that each must have, such as {"lang": "en"}.',
      ),
      where: JsonObject.exactOptional().describe(
        'Conditions on metadata fields, such as {"year": {"lt": 2000}, "tags": {"contains_all": ["a", "b"]}}.',
      ),
      dry_run: z.boolean().exactOptional().describe('Only count the documents.'),
    }),
    output: z.object({ deleted: z.int(), more: z.boolean(), matching: z.int().exactOptional() }),
    run: async (client, { index, ...asked }, signal) =>
      client.deleteDocuments(await idOf(client, index, signal), asked, { signal }),
  }),
};

/** An agent gets the score without bonuses, and the bonuses. The other components say little to it. */
function explained({ components, chunks, ...others }: Partial<Result>): object {
  return {
    ...others,
    ...(components && { maxsim: components.maxsim, matches: components.matches ?? [] }),
    ...(chunks && { chunks: chunks.map(explained) }),
  };
}

/** The passage stands for the text, which would fill the context of an agent. */
function withoutText(result: Result, field: string): Partial<Result> {
  if (result.passage === null) {
    const { passage: _none, ...others } = result;
    return others;
  }
  const { [field]: _text, ...metadata } = result.metadata;
  return { ...result, metadata };
}

async function idOf(client: Maxsimd, nameOrId: string, signal: AbortSignal): Promise<string> {
  const index = await findIndex(client, nameOrId, signal);
  if (index === undefined)
    throw new CommandFailure('not_found', `there is no index ${JSON.stringify(nameOrId)}`);
  return index.id;
}
