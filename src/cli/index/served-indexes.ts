/** `maxsimd index list`, `create`, `update`, `rename`, `swap` and `delete` work on the indexes of a tenant, through the HTTP API. */
import { clientOf, modelFields, requireIndex, type Endpoint } from '../client.ts';
import type { Index } from '../../../clients/typescript/src/types.ts';
import type { Confirm } from '../confirm.ts';
import { table, type CommandResult } from '../output.ts';

const retryMsMax = 10_000;

export async function listIndexes(endpoint: Endpoint): Promise<CommandResult> {
  const indexes = await clientOf(endpoint, retryMsMax).listIndexes();
  return {
    document: { data: indexes },
    text: table(
      ['name', 'index', 'status', 'model', 'created', 'match fields'],
      indexes.map((index) => [
        index.name,
        index.id,
        index.status,
        `${index.model}/${index.model_version}`,
        index.created_at,
        matchFieldsOf(index),
      ]),
    ),
  };
}

function matchFieldsOf({ match_fields: fields = [] }: Index): string {
  return fields.join(', ');
}

export interface NewIndex {
  readonly name: string;
  /** `NAME` or `NAME/VERSION`; `undefined` = the default of the service. */
  readonly model: string | undefined;
  readonly matchFields: readonly string[] | undefined;
}

export async function createIndex(
  endpoint: Endpoint,
  { name, model, matchFields }: NewIndex,
): Promise<CommandResult> {
  const index = await clientOf(endpoint, retryMsMax).createIndex({
    name,
    ...modelFields(model),
    ...(matchFields && { match_fields: matchFields }),
  });
  return { document: index, text: `index ${index.name} (${index.id}) is created` };
}

export async function setMatchFields(
  endpoint: Endpoint,
  word: string,
  matchFields: readonly string[],
): Promise<CommandResult> {
  const client = clientOf(endpoint, retryMsMax);
  const { id, name } = await requireIndex(client, word);
  const index = await client.setMatchFields(id, matchFields);
  const now = matchFieldsOf(index);
  const text = now === '' ? 'has no match fields now' : `has the match fields ${now} now`;
  return { document: index, text: `index ${name} (${id}) ${text}` };
}

export async function renameIndex(endpoint: Endpoint, word: string, newName: string): Promise<CommandResult> {
  const client = clientOf(endpoint, retryMsMax);
  const { id, name: before } = await requireIndex(client, word);
  const index = await client.renameIndex(id, newName);
  return { document: index, text: `index ${before} (${id}) is called ${index.name} now` };
}

export async function swapIndexes(
  endpoint: Endpoint,
  word: string,
  otherWord: string,
): Promise<CommandResult> {
  const client = clientOf(endpoint, retryMsMax);
  const index = await requireIndex(client, word);
  const other = await requireIndex(client, otherWord);
  const swapped = await client.swapIndexNames(index.id, other.id);
  return {
    document: { data: [swapped, { ...other, name: index.name }] },
    text: `index ${index.id} is called ${swapped.name} now, and ${other.id} is called ${index.name}`,
  };
}

export async function deleteIndex(
  endpoint: Endpoint,
  word: string,
  confirm: Confirm,
): Promise<CommandResult> {
  const client = clientOf(endpoint, retryMsMax);
  const { id, name } = await requireIndex(client, word);
  await confirm(`Erase index ${name} (${id}) with all its documents?`);
  await client.deleteIndex(id);
  return { document: { index_id: id, name, deleted: true }, text: `index ${name} (${id}) is erased` };
}
