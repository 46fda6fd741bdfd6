/** Starts, calls, stops and kills a node process. The process has a clock and connections of its own. */
import { fork, type ChildProcess } from 'node:child_process';
import { openSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { NodeGone, Refused, type LoadNode, type MortalNode } from './load-node.ts';
import type { CallKind, CallOf, FromNode, NodeAnswers, NodeCall, ToNode } from './node-calls.ts';

export interface NodeProcessOptions {
  readonly directory: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly clockOffsetMs: () => number;
  readonly onBackgroundError: (job: string, message: string) => void;
}

const entry = path.join(import.meta.dirname, 'node-main.ts');
const readyMsMax = 60_000;

export class NodeProcess implements LoadNode, MortalNode {
  readonly #options: NodeProcessOptions;
  readonly #calls = new Map<number, PromiseWithResolvers<unknown>>();
  #child: ChildProcess | undefined;
  #asleep = Promise.withResolvers<void>();
  #count = 0;
  life = 0;
  isUp = false;
  isStalled = false;

  constructor(options: NodeProcessOptions) {
    this.#options = options;
  }

  /** The name of its connections in the database. It is new with each start. */
  get name(): string {
    return `${path.basename(this.#options.directory)}.${this.life}`;
  }

  async start(): Promise<void> {
    const { directory, environment, clockOffsetMs, onBackgroundError } = this.#options;
    this.life += 1;
    const log = openSync(`${directory}.log`, 'a');
    const catalog = new URL(environment['MAXSIMD_CATALOG_URL'] ?? '');
    catalog.searchParams.set('application_name', this.name);
    const child = fork(entry, {
      stdio: ['ignore', log, log, 'ipc'],
      env: {
        ...process.env,
        ...environment,
        MAXSIMD_CATALOG_URL: catalog.href,
        MAXSIMD_DATA_DIR: directory,
        MAXSIMD_LOG_LEVEL: 'fatal',
        TEST_CLOCK_OFFSET_MS: String(clockOffsetMs()),
      },
    });
    this.#child = child;
    const ready = Promise.withResolvers<void>();
    const late = setTimeout(() => child.kill('SIGKILL'), readyMsMax);
    child.on('message', (message: FromNode) => {
      if ('ready' in message) ready.resolve();
      else if ('asleep' in message) this.#asleep.resolve();
      else if ('job' in message) onBackgroundError(message.job, message.message);
      else this.#answered(message);
    });
    child.once('exit', () => {
      if (this.#child !== child) return;
      this.isUp = false;
      ready.reject(new NodeGone('it ended before it was ready'));
      for (const call of this.#calls.values()) call.reject(new NodeGone(this.name));
      this.#calls.clear();
    });
    try {
      await ready.promise;
      this.isUp = true;
    } finally {
      clearTimeout(late);
    }
  }

  call<Kind extends CallKind>(call: CallOf<Kind>): Promise<NodeAnswers[Kind]> {
    if (!this.isUp) return Promise.reject(new NodeGone(this.name));
    const answer = Promise.withResolvers<unknown>();
    this.#count += 1;
    this.#calls.set(this.#count, answer);
    this.#send({ id: this.#count, call: call as NodeCall });
    return answer.promise as Promise<NodeAnswers[Kind]>;
  }

  /** Resolves once the node has stopped itself in the middle of a merge. */
  sleepAtSwap(): Promise<void> {
    this.#asleep = Promise.withResolvers();
    this.#send({ sleepAtSwap: true });
    return this.#asleep.promise;
  }

  staysAwake(): void {
    this.#send({ sleepAtSwap: false });
  }

  signal(name: NodeJS.Signals): void {
    this.#child?.kill(name);
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  }

  async loseDisk(): Promise<void> {
    await rm(this.#options.directory, { recursive: true, force: true });
  }

  #send(message: ToNode): void {
    // The channel has closed, so the process has ended.
    this.#child?.send(message, () => undefined);
  }

  #answered(message: Extract<FromNode, { id: number }>): void {
    const call = this.#calls.get(message.id);
    this.#calls.delete(message.id);
    if ('value' in message) call?.resolve(message.value);
    else call?.reject(new Refused(message.code, message.message));
  }
}
