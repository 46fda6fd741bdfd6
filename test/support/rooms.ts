/**
 * The rooms of the repository and what each may import. docs/architecture/overview.md states the same in its table of
 * rooms, and a test compares the two.
 */

/** Folders that every room may import, as the files directly under `src`. */
const sharedRooms: readonly string[] = ['src/input', 'src/observation', 'src/process'];

/** Whether every room may import this file. */
export function isShared(file: string): boolean {
  return /^src\/[^/]+\.ts$/.test(file) || sharedRooms.some((room) => file.startsWith(`${room}/`));
}

/** Room -> files and folders that its TypeScript may import, besides its own and the shared files. */
export const mayImport: Readonly<Record<string, readonly string[]>> = {
  'src/app': ['src/http', 'src/service', 'src/encoder', 'src/index', 'src/catalog'],
  'src/bootstrap': [],
  'src/catalog': ['src/contracts'],
  'src/cli': [
    'src/service',
    'src/encoder',
    'src/index',
    'src/catalog',
    'src/contracts',
    'clients/typescript',
    'src/app/serve.ts',
    'src/app/config.ts',
    'src/http/body',
    'src/http/protocol',
  ],
  'src/console': [],
  'src/contracts': [],
  'src/encoder': ['src/contracts'],
  'src/http': ['src/service', 'src/catalog/contract.ts'],
  'src/index': ['src/contracts'],
  'src/input': [],
  'src/observation': [],
  'src/process': [],
  'src/service': ['src/encoder', 'src/index', 'src/catalog', 'src/contracts'],
  bench: [
    'src/app',
    'src/service',
    'src/encoder',
    'src/index',
    'src/catalog',
    'src/contracts',
    'deploy/local',
  ],
  'clients/langchain': [],
  'clients/llamaindex': [],
  'clients/python': [],
  'clients/tools': ['src/http', 'src/service', 'src/catalog'],
  'clients/typescript': [],
  'deploy/local': ['clients/tools'],
  docs: ['src/app', 'src/cli/beir', 'clients/tools'],
  examples: ['clients/typescript'],
  packages: ['clients/tools'],
  test: [
    'src/app',
    'src/http',
    'src/service',
    'src/encoder',
    'src/index',
    'src/catalog',
    'src/contracts',
    'src/cli',
    'src/console',
    'clients',
    'deploy',
    'docs',
    'bench',
  ],
};

/** `room target`: only types may be imported. */
export const typesAlone: ReadonlySet<string> = new Set(['src/http src/catalog/contract.ts']);

/** Rooms of the addon from the bottom up: each may include what stands before it. */
export const addonRooms: readonly string[] = [
  'kernels',
  'files',
  'store',
  'runtime',
  'device',
  'codes',
  'values',
  'index',
  'candidates',
  'search',
  'binding',
];

/** The room of a file; `undefined` = it stands above them. */
export function roomOf(file: string): string | undefined {
  return Object.keys(mayImport).find((room) => file.startsWith(`${room}/`));
}
