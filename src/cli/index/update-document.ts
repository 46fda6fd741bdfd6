/** `maxsimd document update`: replaces the metadata of a document, or merges fields into it. */
import { clientOf, requireIndex, type Endpoint } from '../client.ts';
import { CommandFailure } from '../failure.ts';
import type { CommandResult } from '../output.ts';
import { parseObject } from '../search.ts';

export interface UpdateCommand {
  readonly docId: string;
  /** JSON, as is `metadataMerge`. */
  readonly metadata: string | undefined;
  readonly metadataMerge: string | undefined;
}

export async function updateDocument(
  endpoint: Endpoint,
  indexName: string,
  { docId, metadata, metadataMerge }: UpdateCommand,
): Promise<CommandResult> {
  if ((metadata === undefined) === (metadataMerge === undefined))
    throw new CommandFailure('usage_error', 'one of --metadata and --metadata-merge is needed');
  const change =
    metadata === undefined
      ? parseObject('--metadata-merge', metadataMerge!)
      : parseObject('--metadata', metadata);
  const client = clientOf(endpoint, 150_000);
  const { id } = await requireIndex(client, indexName);
  const document = await (metadata === undefined
    ? client.mergeMetadata(id, docId, change)
    : client.updateMetadata(id, docId, change));
  return { document, text: JSON.stringify(document.metadata) };
}
