/** `maxsimd index list`, `rename`, `swap` and `delete`: the indexes that the tenant of an API key sees, through the HTTP API. */
import { ApiClient } from '../api/client.ts';
import type { Endpoint } from '../api/endpoint.ts';
import { CommandFailure } from '../failure.ts';
import { table, type CommandResult } from '../output.ts';

const policy = { unavailableMsMax: 10_000, brokenAttemptsMax: 1 };

export async function listIndexes(endpoint: Endpoint): Promise<CommandResult> {
  const indexes = await new ApiClient(endpoint, { policy }).listIndexes();
  return {
    document: { data: indexes },
    text: table(
      ['name', 'index', 'status', 'model', 'created'],
      indexes.map(({ name, id, status, model, model_version: version, created_at: created }) => [
        name,
        id,
        status,
        `${model}/${version}`,
        created,
      ]),
    ),
  };
}

export async function renameIndex(
  endpoint: Endpoint,
  { name, newName }: { readonly name: string; readonly newName: string },
): Promise<CommandResult> {
  const client = new ApiClient(endpoint, { policy });
  const { id, name: before } = await client.requireIndex(name);
  const index = await client.updateIndex(id, { name: newName });
  return { document: index, text: `index ${before} (${id}) is called ${index.name} now` };
}

/** Never sent twice: that would undo it. */
export async function swapIndexes(
  endpoint: Endpoint,
  { name, otherName }: { readonly name: string; readonly otherName: string },
): Promise<CommandResult> {
  const client = new ApiClient(endpoint, { policy: { unavailableMsMax: 0, brokenAttemptsMax: 1 } });
  const index = await client.requireIndex(name);
  const other = await client.requireIndex(otherName);
  const swapped = await client.updateIndex(index.id, { swap_name_with: other.id });
  return {
    document: { data: [swapped, { ...other, name: index.name }] },
    text: `index ${index.id} is called ${swapped.name} now, and ${other.id} is called ${index.name}`,
  };
}

export interface DeleteIndex {
  /** Or identifier. */
  readonly name: string;
  /** Asks the person; `true` = go on. */
  readonly confirm: (question: string) => Promise<boolean>;
}

export async function deleteIndex(endpoint: Endpoint, command: DeleteIndex): Promise<CommandResult> {
  const client = new ApiClient(endpoint, { policy });
  const { id, name } = await client.requireIndex(command.name);
  if (!(await command.confirm(`Erase index ${name} (${id}) with all its documents? [y/N] `))) {
    throw new CommandFailure('not_confirmed', 'nothing was erased');
  }
  await client.deleteIndex(id);
  return { document: { index_id: id, name, deleted: true }, text: `index ${name} (${id}) is erased` };
}
