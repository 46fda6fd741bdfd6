import { setTimeout as pause } from 'node:timers/promises';
import { queryDatabase } from '../servers.ts';
import type { MortalNode } from './load-node.ts';

const pollMs = 20;

/** Kills a node and starts it again. `url` is that of the catalog's database. */
export async function killAndStart(url: string, node: MortalNode, losesDisk: boolean): Promise<void> {
  await killForGood(url, node, losesDisk);
  // A start may fail because of another fault. Then the next one is tried at once.
  while (!node.isUp) await node.start().catch(() => undefined);
}

/**
 * Kills a node. Resolves when the database has ended the connections of the node. From then on nothing that the node had begun
 * can still happen.
 */
export async function killForGood(url: string, node: MortalNode, losesDisk: boolean): Promise<void> {
  const { name } = node;
  await node.kill();
  if (losesDisk) await node.loseDisk();
  const text = `SELECT FROM pg_stat_activity WHERE application_name = '${name}'`;
  for (;;) {
    const left = await queryDatabase(url, text).catch(() => undefined);
    if (left?.length === 0) return;
    await pause(pollMs);
  }
}
