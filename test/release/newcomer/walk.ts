/** The way of a newcomer in an empty folder: programs are run as the guide says, from the packages alone. */
import { execFile } from 'node:child_process';
import { copyFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { passages } from '../../support/running/texts.ts';
import { startApplication, type Searched } from './application.ts';

const documentCount = 200;

export interface Given {
  /** The packages are installed in it. */
  readonly folder: string;
  /** Packages of the clients. */
  readonly tarball: string;
  readonly wheel: string;
  /** The export of a second model. */
  readonly model: string;
  /** With the address and the key of a service that runs. */
  readonly environment: Readonly<Record<string, string>>;
}

/** Documents are imported and searched, and the application moves to a second model while it searches. */
export async function walk({ folder, model, environment, ...clients }: Given): Promise<Searched> {
  const run = async (program: string, ...args: readonly string[]): Promise<string> =>
    (await promisify(execFile)(program, args, { cwd: folder, env: environment, maxBuffer: 2 ** 26 })).stdout;
  const importInto = async (name: string, ...ofModel: readonly string[]): Promise<string> => {
    const printed = await run('venv/bin/python', 'import.py', 'documents.jsonl', name, ...ofModel);
    const { index, documents, failed } = JSON.parse(printed) as Readonly<
      Record<'documents' | 'failed', number>
    > & { readonly index: string };
    if (documents !== documentCount || failed !== 0)
      throw new Error(`${name}: ${documents} stored, ${failed} failed`);
    return index;
  };
  await installClients(clients, run);
  writeFiles(folder);
  const limits = ['--requests-per-minute', '1000000', '--max-concurrent-requests', '8'];
  await run('npx', 'maxsimd', 'tenant', 'limits', 'default', ...limits);
  const first = await importInto('newcomer-first');
  const application = startApplication(folder, environment, first);
  await application.switchTo(first);
  await run('npx', 'maxsimd', 'models', 'add', model, '--name', 'second');
  const second = await importInto('newcomer-second', 'second');
  await application.switchTo(second);
  await run('npx', 'maxsimd', 'index', 'delete', 'newcomer-first', '--yes');
  return application.end();
}

async function installClients(
  { tarball, wheel }: Pick<Given, 'tarball' | 'wheel'>,
  run: (program: string, ...args: readonly string[]) => Promise<string>,
): Promise<void> {
  const quiet = ['--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'];
  await run('npm', 'install', ...quiet, tarball);
  await run('python3', '-m', 'venv', 'venv');
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
  await run('venv/bin/python', ...pip, wheel);
}

function writeFiles(folder: string): void {
  for (const name of ['import.py', 'search.mts'])
    copyFileSync(path.join(import.meta.dirname, name), path.join(folder, name));
  const documents = Array.from({ length: documentCount }, (_, at) => ({
    doc_id: String(at),
    text: passages[at % passages.length]!.text,
  }));
  writeFileSync(
    path.join(folder, 'documents.jsonl'),
    documents.map((document) => `${JSON.stringify(document)}\n`).join(''),
  );
  writeFileSync(path.join(folder, 'queries.json'), JSON.stringify(passages.map(({ question }) => question)));
}
