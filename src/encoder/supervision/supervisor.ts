/**
 * Keeps local encoder processes running. It spawns them on unix sockets in a private directory. It restarts a process that crashes
 * (with growing delays), does not get ready, hangs (no answer to health checks) or outgrows its memory bound. `close` ends them all.
 * The addresses stay the same across restarts. A child ends when its IPC channel to this process closes, so that none survives a
 * kill of the api process.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Provider } from '../protocol/contract.ts';
import { EncoderProbe } from './encoder-probe.ts';
import { makeSocketDirectory } from '../protocol/socket-directory.ts';

export interface EncoderSupervisorOptions {
  /** Name of the supervisor. Directories of earlier ones of this name are removed, so no two may run at the same time. */
  readonly name?: string;
  readonly processes: number;
  readonly modelDirectories: readonly string[];
  /** Models that are left out if they cannot be loaded. */
  readonly optionalModelDirectories?: readonly string[];
  readonly provider: Provider;
  /** Inference threads of each process; 0 = one per core, shared between the processes. */
  readonly threads: number;
  /** GPUs, one for each process in turn. Absent = the first GPU. */
  readonly devices?: readonly number[];
  readonly logLevel?: string;
  /** Receives each JSON log line of a child, and lines of the supervisor in the same format. */
  readonly onLog: (line: string) => void;
  /** A process with more resident bytes is restarted. Absent = no bound. */
  readonly residentBytesMax?: () => number;
  /** A process that is not ready after this time is killed and started again. */
  readonly startMs?: number;
  /** A serving process that answers no health check for this long is killed. */
  readonly hangMs?: number;
  /** Further arguments of the encoder process. */
  readonly extraArguments?: readonly string[];
}

export interface EncoderSupervisor {
  readonly addresses: readonly string[];
  /** Resolves when every process has been ready once. Rejects when one cannot start. */
  readonly ready: Promise<void>;
  /** Ids of the running processes. */
  processIds(): readonly number[];
  /** Drains one process after the other, and waits for the next one each time. So calls always find an encoder. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

const defaults = { startMs: 240_000, hangMs: 10_000 };
const probeIntervalMs = 1000;
/** Clients wait for a process that was ready before. So its delay grows less than that of one that was never ready. */
const restartDelayMs = { first: 100, longestOnceReady: 1000, longest: 10_000 };
/** A process that has run longer than this is restarted with the first delay again. */
const stableMs = 30_000;
/** The time that a child may drain before it is killed. */
const drainMs = 10_000;
/** The exit code of an encoder that cannot start: a wrong model or provider, for which a restart does not help. */
const startUpFailure = 78;

/** An encoder cannot start. */
export class EncoderStartFailure extends Error {
  override readonly name = 'EncoderStartFailure';
  /** The last fatal message of its log. It names files of this machine, so it is for the operator only. */
  readonly reason: string;

  constructor(encoder: number, reason: string) {
    super(`encoder ${encoder} cannot start; its log says why`);
    this.reason = reason;
  }
}

export async function superviseEncoders(options: EncoderSupervisorOptions): Promise<EncoderSupervisor> {
  const directory = await makeSocketDirectory(options.name);
  const children = Array.from(
    { length: options.processes },
    (_, i) => new SupervisedEncoder(options, path.join(directory, `${i}.sock`), i),
  );
  const ready = Promise.all(children.map(async (child) => child.ready)).then(() => undefined);
  // The caller may await it late.
  ready.catch(() => undefined);
  return {
    addresses: children.map(({ address }) => address),
    ready,
    processIds: () => children.map(({ processId }) => processId).filter((id) => id !== undefined),
    restart: async () => {
      for (const child of children) await child.restart();
    },
    close: async () => {
      await Promise.all(children.map(async (child) => child.close()));
      await rm(directory, { recursive: true, force: true });
    },
  };
}

class SupervisedEncoder {
  readonly address: string;
  readonly #settled = Promise.withResolvers<void>();
  readonly ready = this.#settled.promise;
  readonly #options: EncoderSupervisorOptions;
  readonly #number: number;
  readonly #closed = new AbortController();
  readonly #ended: Promise<void>;
  #child: ChildProcess | undefined;
  /** Resolves when the next process is ready. */
  #successor = Promise.withResolvers<void>();

  constructor(options: EncoderSupervisorOptions, socket: string, number: number) {
    this.#options = options;
    this.#number = number;
    this.address = `unix:${socket}`;
    this.#ended = this.#keepRunning();
  }

  get processId(): number | undefined {
    return this.#child?.pid;
  }

  async restart(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    const successor = this.#successor.promise;
    await terminate(child);
    await Promise.race([successor, this.#ended]);
  }

  async close(): Promise<void> {
    this.#closed.abort();
    if (this.#child !== undefined) await terminate(this.#child);
    await this.#ended;
    this.#settled.reject(new Error('the encoder was closed before it was ready'));
  }

  async #keepRunning(): Promise<void> {
    let delayMs = restartDelayMs.first;
    for (;;) {
      const { code, everReady, ranMs, lastWords } = await this.#runOnce();
      if (this.#closed.signal.aborted) return;
      if (code === startUpFailure && !everReady) {
        this.#settled.reject(new EncoderStartFailure(this.#number, lastWords));
      }
      if (ranMs > stableMs) delayMs = restartDelayMs.first;
      if (everReady) delayMs = Math.min(delayMs, restartDelayMs.longestOnceReady);
      this.#log('warn', `encoder exited with ${code ?? 'a signal'}; restarting`, { delay_ms: delayMs });
      await pause(delayMs, undefined, { signal: this.#closed.signal }).catch(() => undefined);
      if (this.#closed.signal.aborted) return;
      delayMs = Math.min(delayMs * 2, restartDelayMs.longest);
    }
  }

  /** One life of the process, from spawn to exit. */
  async #runOnce(): Promise<{ code: number | null; everReady: boolean; ranMs: number; lastWords: string }> {
    const startedAt = performance.now();
    const child = spawn(process.execPath, this.#arguments(), { stdio: ['ignore', 'pipe', 'pipe', 'ipc'] });
    this.#child = child;
    let everReady = false;
    const watching = new AbortController();
    const { startMs = defaults.startMs } = this.#options;
    const startTimer = setTimeout(() => {
      this.#log('error', `encoder is not ready after ${startMs} ms; killing it`);
      child.kill('SIGKILL');
    }, startMs).unref();
    let lastWords = '';
    const logged = new Promise<void>((resolve) => {
      createInterface({ input: child.stderr! })
        .on('line', (line) => {
          lastWords = fatalMessage(line) ?? lastWords;
          this.#options.onLog(line);
        })
        .once('close', resolve);
    });
    createInterface({ input: child.stdout! }).on('line', (line) => {
      if (!isReadyLine(line)) return;
      everReady = true;
      clearTimeout(startTimer);
      this.#settled.resolve();
      this.#successor.resolve();
      this.#successor = Promise.withResolvers();
      void this.#watch(child, watching.signal);
    });
    const code = await new Promise<number | null>((resolve) => {
      child.once('exit', resolve);
      child.once('error', (error) => {
        this.#log('error', `encoder cannot be spawned: ${error.message}`);
        resolve(null);
      });
    });
    clearTimeout(startTimer);
    watching.abort();
    this.#child = undefined;
    // The last lines of its log may still be on their way.
    if (code === startUpFailure) await logged;
    return { code, everReady, ranMs: performance.now() - startedAt, lastWords };
  }

  #arguments(): string[] {
    const entry = new URL(`../server/main${path.extname(import.meta.filename)}`, import.meta.url);
    const {
      processes,
      modelDirectories,
      optionalModelDirectories = [],
      provider,
      threads,
      devices = [0],
      logLevel = 'info',
      extraArguments = [],
    } = this.#options;
    const share = threads === 0 ? Math.max(1, Math.floor(availableParallelism() / processes)) : threads;
    const named = {
      listen: this.address,
      provider,
      device: String(devices[this.#number % devices.length] ?? 0),
      threads: String(share),
      'log-level': logLevel,
    };
    return [
      fileURLToPath(entry),
      ...Object.entries(named).flatMap(([name, value]) => [`--${name}`, value]),
      ...modelDirectories.flatMap((directory) => ['--model-dir', directory]),
      ...optionalModelDirectories.flatMap((directory) => ['--optional-model-dir', directory]),
      ...extraArguments,
    ];
  }

  /** Ends a process that hangs or outgrows its memory bound. After its exit the next one is spawned. */
  async #watch(child: ChildProcess, signal: AbortSignal): Promise<void> {
    const { hangMs = defaults.hangMs, residentBytesMax = () => Infinity } = this.#options;
    const probe = new EncoderProbe(this.address);
    let answeredAt = performance.now();
    while (!signal.aborted) {
      // The pause comes first: an encoder that is too large from the start serves meanwhile.
      await pause(Math.min(probeIntervalMs, hangMs / 4), undefined, { signal, ref: false }).catch(
        () => undefined,
      );
      const residentBytes = (await probe.statistics(Math.min(probeIntervalMs * 2, hangMs)))?.residentBytes;
      if (signal.aborted) break;
      if (residentBytes !== undefined) answeredAt = performance.now();
      const silentMs = performance.now() - answeredAt;
      if (silentMs > hangMs) {
        this.#log('error', `encoder does not answer for ${Math.round(silentMs)} ms; killing it`);
        child.kill('SIGKILL');
        break;
      }
      if (residentBytes !== undefined && residentBytes > residentBytesMax()) {
        this.#log('error', 'encoder outgrew its memory bound; restarting it', {
          resident_bytes: residentBytes,
        });
        await terminate(child);
        break;
      }
    }
    probe.close();
  }

  #log(level: 'warn' | 'error', message: string, fields: Record<string, unknown> = {}): void {
    const line = { level, time: new Date().toISOString(), service: 'maxsimd', pid: process.pid };
    this.#options.onLog(JSON.stringify({ ...line, encoder: this.#number, ...fields, msg: message }));
  }
}

/** Sends SIGTERM, and SIGKILL if the process has not drained in time. Resolves when it has ended. */
async function terminate(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  await new Promise<void>((resolve) => {
    const timer = setTimeout(() => child.kill('SIGKILL'), drainMs);
    child.once('exit', () => {
      clearTimeout(timer);
      resolve();
    });
    child.kill('SIGTERM');
  });
}

/** The message of a log line, if its level is fatal. */
function fatalMessage(line: string): string | undefined {
  try {
    const { level, msg } = JSON.parse(line) as { level?: unknown; msg?: unknown };
    return level === 'fatal' && typeof msg === 'string' ? msg : undefined;
  } catch {
    return undefined;
  }
}

function isReadyLine(line: string): boolean {
  try {
    return (JSON.parse(line) as { event?: unknown }).event === 'ready';
  } catch {
    return false;
  }
}
