/**
 * Process of an attack, at the lowest priority: who attacks a service from elsewhere takes none of its cores. Its
 * parent sends an order; it does it, answers with what came of it, and ends.
 */
import { Agent } from 'node:http';
import { exchange } from '../lib/service/exchange.ts';
import type { Attacker, Attackers } from './attack.ts';
import { attacks } from './attacks.ts';

export interface AttackOrder {
  readonly attack: string;
  readonly step: 'prepare' | 'run';
  readonly attackers: readonly Omit<Attacker, 'send' | 'ask'>[];
  /** The attack is run again until so many seconds are over; 0: once. */
  readonly seconds: number;
}

export interface AttackOutcome {
  readonly ms: number;
  /** How often each status was answered. */
  readonly statuses: Readonly<Record<string, number>>;
}

/** Where an attack is run once and does not end by itself. */
const onceMs = 10_000;

process.once('message', (order: AttackOrder) => void answer(order));

async function answer(order: AttackOrder): Promise<void> {
  process.send?.(await obey(order));
  process.disconnect();
}

async function obey({ attack: name, step, attackers, seconds }: AttackOrder): Promise<AttackOutcome> {
  const attack = attacks.find((each) => each.name === name);
  const [first, ...others] = attackers.map(attackerOf);
  if (attack === undefined || first === undefined) throw new Error(`there is no attack ${name}`);
  const all: Attackers = [first, ...others];
  const started = performance.now();
  const statuses: Record<string, number> = {};
  if (step === 'prepare') await attack.prepare?.(all);
  else {
    const until = AbortSignal.timeout(seconds > 0 ? seconds * 1000 : onceMs);
    do {
      for (const status of await attack.run(all, until)) statuses[status] = (statuses[status] ?? 0) + 1;
      if (seconds === 0) break;
    } while (!until.aborted);
  }
  return { ms: performance.now() - started, statuses };
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
