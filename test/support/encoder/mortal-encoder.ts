/**
 * A fake encoder that ends when it runs a text with the word `unencodable`. All connections break, and some time later a new
 * encoder answers at the same address. It takes the place of real encoders, which need a second to start again.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { startForeignEncoder } from '../network/foreign-encoder.ts';

export interface MortalEncoder {
  readonly address: string;
  /** Texts that were run, in the order of their runs. */
  readonly runs: readonly string[];
  /** For each time that the encoder ended, the texts that were running then. */
  readonly ends: readonly (readonly string[])[];
  /** The time to run a text, and the time between an end and the next start. */
  readonly times: { runMs: number; goneMs: number };
  /** Ends the encoder at once. */
  kill(): void;
  /** Breaks the connections. The encoder goes on. */
  cut(): void;
}

export async function startMortalEncoder(): Promise<MortalEncoder> {
  const behind = await startForeignEncoder();
  const [host, port] = behind.address.split(':') as [string, string];
  const connections = new Set<Socket>();
  let goneUntil = 0;
  const wire = createServer((near) => {
    if (performance.now() < goneUntil) return near.destroy();
    const far = connect(Number(port), host);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      connections.add(from);
      from.on('close', () => to.destroy());
      from.on('error', () => to.destroy());
      from.pipe(to);
    }
    return near;
  });
  await once(wire.listen(0, '127.0.0.1'), 'listening');
  const runs: string[] = [];
  const ends: string[][] = [];
  const times = { runMs: 0, goneMs: 50 };
  const cut = (): void => {
    for (const connection of connections) connection.destroy();
    connections.clear();
  };
  const live = (): void => {
    const running: string[] = [];
    let alive = true;
    const die = (): void => {
      alive = false;
      ends.push(running);
      goneUntil = performance.now() + times.goneMs;
      cut();
      live();
    };
    kill = die;
    behind.behave({
      instance: String(ends.length),
      run: async (text) => {
        if (!alive) return false;
        runs.push(text);
        running.push(text);
        await pause(times.runMs);
        if (alive && text.split(' ').includes('unencodable')) die();
        running.splice(running.indexOf(text), alive ? 1 : 0);
        return alive;
      },
    });
  };
  let kill = live;
  live();
  onTestFinished(() => {
    cut();
    wire.close();
    behind.close();
  });
  const address = `127.0.0.1:${(wire.address() as AddressInfo).port}`;
  return { address, runs, ends, times, kill: () => kill(), cut };
}
