/** `maxsimd document delete`: counts the documents that match, asks, and deletes them in steps. */
import { clientOf, requireIndex, type Endpoint } from '../client.ts';
import type { Confirm } from '../confirm.ts';
import type { CommandResult } from '../output.ts';
import { parseObject } from '../search.ts';

export interface DeleteCommand {
  readonly index: string;
  /** JSON. */
  readonly filter?: string;
  readonly where?: string;
  /** Only counts. */
  readonly dryRun?: true;
}

export async function deleteDocuments(
  endpoint: Endpoint,
  { index, filter, where, dryRun }: DeleteCommand,
  confirm: Confirm,
): Promise<CommandResult> {
  const asked = {
    ...(filter !== undefined && { filter: parseObject('--filter', filter) }),
    ...(where !== undefined && { where: parseObject('--where', where) }),
  };
  const client = clientOf(endpoint, 150_000);
  const { id, name } = await requireIndex(client, index);
  const { matching = 0, hint } = await client.deleteDocuments(id, { ...asked, dry_run: true });
  const said = hint === undefined ? '' : `\n${hint}`;
  if (dryRun === true || matching === 0) {
    const document = { deleted: 0, matching, ...(hint !== undefined && { hint }) };
    return { document, text: `${documents(matching)} of ${JSON.stringify(name)} match${said}` };
  }
  await confirm(`Delete ${documents(matching)} of ${JSON.stringify(name)}?`);
  let deleted = 0;
  for (let more = true; more;) {
    const answer = await client.deleteDocuments(id, asked);
    deleted += answer.deleted;
    more = answer.more;
  }
  return { document: { deleted }, text: `${documents(deleted)} of ${JSON.stringify(name)} deleted${said}` };
}

function documents(count: number): string {
  return count === 1 ? '1 document' : `${count} documents`;
}
