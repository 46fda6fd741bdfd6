import { setTimeout as pause } from 'node:timers/promises';
import { queryDatabase } from '../servers.ts';
import type { MortalNode } from './load-node.ts';

const pollMs = 20;

/** `url`: of the database. */
export async function killAndStart(url: string, node: MortalNode, losesDisk: boolean): Promise<void> {
  await killForGood(url, node, losesDisk);
  // A start that meets another fault fails, as it may; the next is tried at once.
  while (!node.isUp) await node.start().catch(() => undefined);
}

/** Resolves when nothing that the node had begun can happen any more: the database has ended its connections. */
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
