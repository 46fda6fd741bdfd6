/** Opens a catalog in a process of its own, which a test can kill, or which uses a simulated disk. */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { openCatalog } from '../../../src/catalog/sqlite/open-catalog.ts';
import type { SqliteCatalog } from '../../../src/catalog/sqlite/open-catalog.ts';
import { ServiceError } from '../../../src/errors.ts';

interface Call {
  readonly number: number;
  readonly method: string;
  readonly args: readonly unknown[];
}

type Answer =
  | { readonly number: number; readonly ok: true; readonly value: unknown }
  | { readonly number: number; readonly ok: false; readonly code: string; readonly message: string }
  | { readonly notice: string };

/** The methods of the catalog in the other process. */
export type RemoteCatalog = {
  [Method in Exclude<keyof SqliteCatalog, 'actingAs'>]: (
    ...args: Parameters<SqliteCatalog[Method]>
  ) => Promise<Awaited<ReturnType<SqliteCatalog[Method]>>>;
};

export interface CatalogProcess {
  readonly catalog: RemoteCatalog;
  /** Messages of the catalog for its operator. */
  readonly notices: readonly string[];
  readonly kill: () => Promise<void>;
}

/** Opens the catalog, by default as the owner of the directory. Rejects if that fails. */
export async function openRemoteCatalog(
  directory: string,
  environment: Readonly<Record<string, string>> = {},
  { owned = true }: { readonly owned?: boolean } = {},
): Promise<CatalogProcess> {
  const child = fork(import.meta.filename, [path.resolve(directory)], {
    env: { ...process.env, ...environment },
    execArgv: [],
    serialization: 'advanced',
  });
  const pending = new Map<number, PromiseWithResolvers<unknown>>();
  const notices: string[] = [];
  let lastNumber = 0;
  const call = (method: string, args: readonly unknown[]): Promise<unknown> => {
    const reply = Promise.withResolvers<unknown>();
    const number = ++lastNumber;
    pending.set(number, reply);
    child.send({ number, method, args } satisfies Call);
    return reply.promise;
  };
  child.on('message', (answer: Answer) => {
    if ('notice' in answer) {
      notices.push(answer.notice);
      return;
    }
    const reply = pending.get(answer.number);
    pending.delete(answer.number);
    if (answer.ok) reply?.resolve(answer.value);
    else reply?.reject(Object.assign(new Error(answer.message), { code: answer.code }));
  });
  child.once('exit', () => {
    for (const { reject } of pending.values()) reject(new Error('the process has ended'));
  });
  await call('open', [owned]);
  const catalog = new Proxy({} as RemoteCatalog, {
    get:
      (_target, method) =>
      async (...args: unknown[]) => {
        const value = await call(String(method), args);
        if (method === 'close') child.disconnect();
        return value;
      },
  });
  return { catalog, notices, kill: () => killed(child) };
}

async function killed(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

if (process.argv[1] === import.meta.filename) serveCatalog(process.argv[2] ?? '');

function serveCatalog(directory: string): void {
  let catalog: SqliteCatalog;
  const send = (answer: Answer): void => void process.send?.(answer);
  const run = async ({ method, args }: Call): Promise<unknown> => {
    if (method !== 'open')
      return (catalog[method as keyof SqliteCatalog] as (...all: unknown[]) => unknown)(...args);
    catalog = await openCatalog({
      directory,
      owned: args[0] === true,
      onNotice: (notice) => send({ notice }),
    });
    return undefined;
  };
  process.on('message', (call: Call) => {
    const { number } = call;
    run(call).then(
      (value) => send({ number, ok: true, value }),
      (error: unknown) => {
        const code = error instanceof ServiceError ? error.code : 'unexpected';
        send({ number, ok: false, code, message: String(error) });
      },
    );
  });
}
