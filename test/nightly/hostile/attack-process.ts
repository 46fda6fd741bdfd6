/** The process of an attack. Its parent sends an order. The process does it, answers with the outcome, and ends. */
import { Agent } from 'node:http';
import { exchange } from '../../../bench/lib/service/exchange.ts';
import { repeatedAttacks, singleAttacks, type Attacker } from './attacks.ts';

export interface AttackOrder {
  readonly attack: string;
  readonly step: 'prepare' | 'run';
  readonly attackers: readonly Omit<Attacker, 'send' | 'ask'>[];
  /** The attack is run again until so many seconds are over. With 0 it runs once. */
  readonly seconds: number;
}

/** How often each status was answered. */
export type AttackOutcome = Readonly<Record<string, number>>;

process.once('message', async (order: AttackOrder) => {
  process.send?.(await obey(order));
  process.disconnect();
});

async function obey({ attack: name, step, attackers, seconds }: AttackOrder): Promise<AttackOutcome> {
  const attack = [...singleAttacks, ...repeatedAttacks].find((each) => each.name === name);
  const [first, ...others] = attackers.map(attackerOf);
  if (attack === undefined || first === undefined) throw new Error(`there is no attack ${name}`);
  const statuses: Record<string, number> = {};
  if (step === 'prepare') {
    await attack.prepare?.(first);
    return statuses;
  }
  const endAt = performance.now() + seconds * 1000;
  const until = seconds === 0 ? new AbortController().signal : AbortSignal.timeout(seconds * 1000);
  do {
    for (const status of await attack.run([first, ...others], until))
      statuses[status] = (statuses[status] ?? 0) + 1;
  } while (performance.now() < endAt);
  return statuses;
}

function attackerOf(given: AttackOrder['attackers'][number]): Attacker {
  const agent = new Agent({ keepAlive: true });
  const asked = (route: string, body?: string | Buffer, timeoutMs?: number) =>
    exchange({
      agent,
      url: new URL(route, given.url),
      apiKey: given.apiKey,
      body,
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    });
  return {
    ...given,
    send: async (route, body, leaveMs) => (await asked(route, body, leaveMs)).status,
    ask: async (route, body) => (await asked(route, body)).text,
  };
}
