/**
 * Keeps the structure: imports flow downward, each third-party engine has one importer, the environment
 * is read by program entries only, names and sizes stay within the house rules. It also compares the pages of
 * docs/architecture with the code.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { longFunctionsOfCpp, longFunctionsOfTypeScript } from './support/long-functions.ts';
import { addonRooms, isShared, mayImport, roomOf, typesAlone } from './support/rooms.ts';
import { statedConstants } from './support/stated-constants.ts';

const root = path.resolve(import.meta.dirname, '..');
const tracked = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => existsSync(path.join(root, file)) && file !== '');
const sources = tracked.filter((file) => file.startsWith('src/') && file.endsWith('.ts'));
const text = new Map<string, string>();
for (const file of tracked.filter((name) => /\.(tsx?|mjs|cc|cpp|cu|cuh|h|hpp|c)$/.test(name))) {
  text.set(file, readFileSync(path.join(root, file), 'utf8'));
}

/** Module specifiers of a TypeScript file, with whether the import is of types only. */
function importsOf(file: string): readonly { specifier: string; typeOnly: boolean }[] {
  const pattern =
    /^\s*(?:import|export)\s+(type\s+)?(?:[^'"]*?\sfrom\s+)?['"]([^'"]+)['"]|import\(\s*['"]([^'"]+)['"]\s*\)|require(?:\.resolve)?\(\s*['"]([^'"]+)['"]\s*\)/gm;
  return [...(text.get(file) ?? '').matchAll(pattern)].map((match) => ({
    specifier: match[2] ?? match[3] ?? match[4] ?? '',
    typeOnly: match[1] !== undefined,
  }));
}

function resolved(file: string, specifier: string): string {
  return specifier.startsWith('.') ? path.posix.join(path.posix.dirname(file), specifier) : specifier;
}

function layerOf(file: string): string {
  const [, first = ''] = file.split('/');
  return first;
}

/** Rooms of the encoder -> rooms that they may not see. The two ends of the wire meet in `protocol` alone. */
const unseen: Readonly<Record<string, readonly string[]>> = {
  protocol: ['client', 'supervision', 'server', 'scheduling', 'inference', 'model'],
  client: ['supervision', 'server', 'scheduling', 'inference', 'model'],
  supervision: ['client', 'server', 'scheduling', 'model'],
  server: ['client'],
  scheduling: ['client', 'supervision', 'server'],
  inference: ['client', 'supervision', 'server', 'scheduling'],
  model: ['client', 'supervision', 'server', 'scheduling'],
};

const shared = sources.filter(isShared);

describe('layers', () => {
  it.each(Object.entries(mayImport))('files of %s import only what their room may see', (room, seen) => {
    const files = [...text.keys()].filter((file) => /\.(tsx?|mjs)$/.test(file) && roomOf(file) === room);
    for (const file of files) {
      for (const { specifier, typeOnly } of importsOf(file).filter((item) =>
        item.specifier.startsWith('.'),
      )) {
        const target = resolved(file, specifier);
        if (roomOf(target) === room || shared.includes(target) || !tracked.includes(target)) continue;
        const allowed = seen.find((place) => target === place || target.startsWith(`${place}/`));
        expect(allowed, `${file} imports ${target}`).toBeDefined();
        if (typesAlone.has(`${room} ${allowed}`)) expect(typeOnly, `${file} imports ${target}`).toBe(true);
      }
    }
  });

  it('few files stand directly under src', () => {
    expect(sources.filter((file) => path.posix.dirname(file) === 'src').length).toBeLessThanOrEqual(5);
  });

  it('the shared files import none but each other', () => {
    for (const file of shared) {
      for (const { specifier } of importsOf(file).filter((item) => item.specifier.startsWith('.')))
        expect(shared, file).toContain(resolved(file, specifier));
    }
  });

  it.each(sources.filter((file) => file.startsWith('src/encoder/')))('%s keeps to its room', (file) => {
    const [, , room = ''] = file.split('/');
    expect(Object.keys(unseen)).toContain(room);
    for (const { specifier } of importsOf(file)) {
      const target = resolved(file, specifier);
      const [, , other = ''] = target.startsWith('src/encoder/') ? target.split('/') : [];
      expect(unseen[room], `${file} imports ${target}`).not.toContain(other);
    }
  });

  it('src has no import cycles', () => {
    const graph = new Map(
      sources.map((file) => [
        file,
        importsOf(file)
          .filter((item) => item.specifier.startsWith('.') && !item.typeOnly)
          .map((item) => resolved(file, item.specifier)),
      ]),
    );
    const state = new Map<string, 'open' | 'done'>();
    const visit = (file: string, trail: readonly string[]): void => {
      if (state.get(file) === 'done') return;
      expect(state.get(file), `cycle: ${[...trail, file].join(' -> ')}`).not.toBe('open');
      state.set(file, 'open');
      for (const next of graph.get(file) ?? []) visit(next, [...trail, file]);
      state.set(file, 'done');
    };
    for (const file of graph.keys()) visit(file, []);
  });
});

describe('benchmarks', () => {
  it('one module of the benchmarks reads options', () => {
    const readers = [...text.keys()].filter(
      (file) =>
        file.startsWith('bench/') &&
        /from '(commander|node:util)'/.test(text.get(file) ?? '') &&
        /\b(Option|parseArgs)\b/.test(text.get(file) ?? ''),
    );
    expect(readers).toEqual(['bench/lib/benchmark.ts']);
  });
});

describe('rooms of the addon', () => {
  it.each([...text.keys()].filter((file) => /^native\/(?!test|sqlite)/.test(file)))(
    '%s includes downward only',
    (file) => {
      const [, room = ''] = file.split('/');
      expect(addonRooms).toContain(room);
      for (const [, included = ''] of (text.get(file) ?? '').matchAll(/#include "([a-z]+)\//g)) {
        expect(addonRooms.slice(0, addonRooms.indexOf(room) + 1), `${file} includes ${included}`).toContain(
          included,
        );
      }
    },
  );
});

describe('pages of docs/architecture', () => {
  const pages = tracked.filter((file) => /^docs\/architecture\/.*\.md$/.test(file));
  const pageText = new Map(pages.map((page) => [page, readFileSync(path.join(root, page), 'utf8')]));

  /** Files and folders that a page names and that do not exist. A name may leave its first folders out. */
  const unknownPathsIn = (page: string): readonly string[] =>
    [...page.matchAll(/`([\w.-]+(?:\/[\w.-]+)+|[\w-]+\.(?:ts|cpp|h|proto|md))`/g)]
      .map(([, named = '']) => named)
      .filter((named) => !tracked.some((file) => `/${file}/`.includes(`/${named}/`)));

  it.each(tracked.filter((file) => /^(ARCHITECTURE|docs\/(architecture|decisions)\/.*)\.md$/.test(file)))(
    '%s names only files and folders that exist',
    (page) => {
      expect(unknownPathsIn(readFileSync(path.join(root, page), 'utf8'))).toEqual([]);
    },
  );

  it('a path that does not exist would be found', () => {
    expect(unknownPathsIn('`src/http`, `src/htt`, `shortlist.cpp` and `shortlists.cpp`')).toEqual([
      'src/htt',
      'shortlists.cpp',
    ]);
  });

  it('ARCHITECTURE.md meets every folder of src and of the addon', () => {
    const story = readFileSync(path.join(root, 'ARCHITECTURE.md'), 'utf8');
    const rooms = [...Object.keys(mayImport), ...addonRooms.map((room) => `native/${room}`), 'native/sqlite'];
    const missed = rooms.filter((room) => /^(src|native)\//.test(room) && !story.includes(`\`${room}`));
    // It serves no document: it makes a bare clone ready.
    expect(missed).toEqual(['src/bootstrap']);
  });

  const [, roomSection = ''] = (pageText.get('docs/architecture/overview.md') ?? '').split('## Rooms\n');
  const [roomTable = ''] = roomSection.split('\n## ');
  const rows = [...roomTable.matchAll(/^\| (`.+?) \| (.+) \| (.+) \|$/gm)].map(
    ([, room = '', contents = '', imports = '']) => ({ rooms: wordsInTicks(room), contents, imports }),
  );
  const named = rows.flatMap(({ rooms }) => rooms);

  it('the table of rooms names every folder of the repository, of src and of native', () => {
    const folders = new Set(tracked.filter((file) => file.includes('/')).map((file) => file.split('/')[0]));
    const rooms = new Set(tracked.flatMap((file) => /^src\/[^/]+(?=\/)/.exec(file)?.[0] ?? []));
    for (const folder of folders)
      expect(
        named.some((room) => room === folder || room.startsWith(`${folder}/`)),
        folder,
      ).toBe(true);
    for (const room of rooms) {
      expect(named).toContain(room);
      expect(Object.keys(mayImport)).toContain(room);
    }
  });

  it('the table of rooms names only folders that the rooms of src have', () => {
    for (const { rooms, contents } of rows.filter((row) => row.rooms[0]?.startsWith('src/'))) {
      const folders = wordsInTicks(contents).filter((word) => /^[a-z]+$/.test(word));
      for (const folder of folders) {
        const has = tracked.some((file) => file.startsWith(`${rooms[0]}/`) && file.includes(`/${folder}/`));
        expect(has, `${rooms[0]}: ${folder}`).toBe(true);
      }
    }
  });

  it('the table of rooms states the rules of imports', () => {
    const stated = rows.flatMap(({ rooms, imports }) =>
      rooms.map((room) => [room, wordsInTicks(imports).toSorted()] as const),
    );
    const withoutRules = stated.filter(([room]) => !(room in mayImport));
    expect(withoutRules.flatMap(([, imports]) => imports)).toEqual([]);
    expect(Object.fromEntries(stated.filter(([room]) => room in mayImport))).toEqual(
      Object.fromEntries(Object.entries(mayImport).map(([room, seen]) => [room, seen.toSorted()])),
    );
  });

  it('the table of rooms and the page of the addon name its rooms from the bottom up', () => {
    const { contents = '' } = rows.find(({ rooms }) => rooms.includes('native')) ?? {};
    const folders = new Set(tracked.flatMap((file) => /^native\/([^/]+)\//.exec(file)?.[1] ?? []));
    const all = [...addonRooms, 'sqlite', 'test'];
    expect(wordsInTicks(contents).filter((word) => folders.has(word))).toEqual(all);
    const own = tableUnder('Rules', pageText.get('docs/architecture/native.md') ?? '');
    expect(own.flatMap(([room = '']) => wordsInTicks(room))).toEqual(all);
    expect([...folders].toSorted()).toEqual(all.toSorted());
  });

  it('a page says of each room of src what it may import', () => {
    const stated = [...pageText.values()].flatMap((content) =>
      [...content.matchAll(/^- (?:`([^`]+)` )?\*\*[Mm]ay import\*\*: (.+)$/gm)].map(
        ([, room = roomOfPage(content), imports = '']) => [room, wordsInTicks(imports).toSorted()] as const,
      ),
    );
    const rules = Object.entries(mayImport).filter(
      ([room]) => room.startsWith('src/') && !isShared(`${room}/`),
    );
    expect(Object.fromEntries(stated)).toEqual(
      Object.fromEntries(rules.map(([room, seen]) => [room, seen.toSorted()])),
    );
  });

  it('a page of one room says who may import it', () => {
    const stated = [...pageText.values()].flatMap((content) =>
      [...content.matchAll(/^- \*\*Imported by\*\*: (.+)$/gm)].map(([, importers = '']) => ({
        room: roomOfPage(content),
        importers: wordsInTicks(importers).toSorted(),
      })),
    );
    expect(stated.length).toBeGreaterThanOrEqual(5);
    for (const { room, importers } of stated) {
      const allowed = Object.entries(mayImport).filter(([, seen]) =>
        seen.some((place) => place === room || place.startsWith(`${room}/`)),
      );
      expect(importers, room).toEqual(allowed.map(([importer]) => importer).toSorted());
    }
  });

  it('main types are where the pages say', () => {
    const types = [...pageText.values()].flatMap((content) => tableUnder('Main types', content));
    expect(types.length).toBeGreaterThan(30);
    for (const [type = '', file = ''] of types) {
      const [name = ''] = wordsInTicks(type);
      const [place = ''] = wordsInTicks(file);
      expect(text.get(place), `${name} in ${place}`).toMatch(
        new RegExp(`\\b(interface|type|class|struct) ${name}\\b`),
      );
    }
  });

  const withoutInvariants = new Set(['overview.md', 'scale.md']);
  it.each([...pageText].filter(([page]) => !withoutInvariants.has(path.basename(page))))(
    '%s names a test for each invariant',
    (_page, content) => {
      const invariants = tableUnder('Invariants', content);
      expect(invariants.length).toBeGreaterThan(0);
      for (const [invariant, guards = ''] of invariants)
        expect(
          wordsInTicks(guards).some((guard) => /(\.test\.ts|_test\.cpp)$/.test(guard)),
          invariant,
        ).toBe(true);
    },
  );

  it('the pages stay short', () => {
    const lines = [...pageText].map(([page, content]) => [page, content.split('\n').length] as const);
    for (const [page, count] of lines)
      expect(count, page).toBeLessThanOrEqual(page.endsWith('overview.md') ? 200 : 90);
    expect(lines.reduce((sum, [, count]) => sum + count, 0)).toBeLessThanOrEqual(920);
  });

  it.each(statedConstants)('$page says "$says", as the code has it', ({ page, says, has }) => {
    expect(pageText.get(`docs/architecture/${page}`)?.replaceAll(/\s+/g, ' ')).toContain(says);
    const sourcesWithIt = [...text].filter(
      ([file, code]) => /^(src|native)\//.test(file) && code.includes(has),
    );
    expect(sourcesWithIt).toHaveLength(1);
  });
});

/** The room that a page is about, by its title. */
function roomOfPage(page: string): string {
  return `src/${/^# ([a-z]+):/.exec(page)?.[1]}`;
}

/** Rows of the table under a heading, without its head. */
function tableUnder(heading: string, page: string): readonly (readonly string[])[] {
  const [, section = ''] = page.split(`\n## ${heading}\n`);
  const [own = ''] = section.split('\n## ');
  return [...own.matchAll(/^\| (.+) \|$/gm)]
    .map(([, cells = '']) => cells.split(' | '))
    .filter((_cells, row) => row > 1);
}

/** The texts between backticks. */
function wordsInTicks(cell: string): readonly string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word);
}

describe('engines', () => {
  const engines = [
    'onnxruntime-node',
    'better-sqlite3',
    'pg',
    'ioredis',
    '@aws-sdk/client-s3',
    '@aws-sdk/lib-storage',
    '@huggingface/tokenizers',
    '@opentelemetry/api',
    '@opentelemetry/exporter-trace-otlp-http',
    '@opentelemetry/resources',
    '@opentelemetry/sdk-trace',
    'prom-client',
    'protobufjs',
    'pino',
    'cli-progress',
    'hyparquet',
    'tar',
    'undici',
    'yaml',
    'grpc-health-check',
    '@grpc/proto-loader',
  ];
  const programs = [...sources, ...tracked.filter((file) => /^clients\/typescript\/.*\.ts$/.test(file))];
  it.each(engines)('%s has exactly one importer', (engine) => {
    const importers = programs.filter((file) =>
      importsOf(file).some(
        (item) => !item.typeOnly && (item.specifier === engine || item.specifier.startsWith(`${engine}/`)),
      ),
    );
    expect(importers).toHaveLength(1);
  });

  it('the console imports Preact, types of the client, the words of texts and itself alone', () => {
    for (const file of tracked.filter((name) => /^src\/console\/.*\.tsx?$/.test(name))) {
      for (const { specifier } of importsOf(file)) {
        if (specifier.startsWith('.'))
          expect(resolved(file, specifier), file).toMatch(/^src\/(console\/|input\/words\.ts$)/);
        else expect(['preact', 'preact/hooks', '@maxsimd/client'], file).toContain(specifier);
      }
    }
  });

  it('commander is imported by the words of the commands only', () => {
    for (const file of sources.filter((name) =>
      importsOf(name).some((item) => item.specifier === 'commander'),
    ))
      expect(file).toMatch(/^src\/cli\/(program|commands\/[a-z]+)\.ts$/);
  });

  it('only the typed wrappers load the addon', () => {
    const loaders = sources.filter((file) => (text.get(file) ?? '').includes('maxsimd.node'));
    expect(loaders).toEqual([
      'src/encoder/inference/rows.ts',
      'src/index/engine/native.ts',
      'src/process/process-tuning.ts',
    ]);
  });

  it('http knows neither gRPC nor SQLite nor the addon', () => {
    for (const file of sources.filter((name) => layerOf(name) === 'http')) {
      for (const { specifier } of importsOf(file)) {
        expect(specifier, file).not.toMatch(/grpc|sqlite|native|onnxruntime/);
      }
    }
  });

  it('service knows no Fastify', () => {
    for (const file of sources.filter((name) => layerOf(name) === 'service')) {
      for (const { specifier } of importsOf(file)) expect(specifier, file).not.toMatch(/fastify/);
    }
  });
});

describe('house rules', () => {
  const entries = new Set(['src/cli/main.ts', 'src/encoder/server/main.ts', 'src/bootstrap/bootstrap.mjs']);

  it('only program entries read the environment', () => {
    const readers = sources.filter((file) => /process\.env\b/.test(text.get(file) ?? ''));
    expect(readers.filter((file) => !entries.has(file))).toEqual([]);
  });

  it('no path is made by the recursive mkdir of Node, which may never end', () => {
    for (const file of sources.filter((name) => !name.endsWith('.mjs')))
      expect(text.get(file), file).not.toMatch(/mkdir(Sync)?\([^;]*recursive/);
  });

  it('there are no default exports and no barrel files', () => {
    for (const file of sources) {
      expect(text.get(file), file).not.toMatch(/^export default/m);
      expect(text.get(file), file).not.toMatch(/^export \* from/m);
    }
  });

  it('nothing is called utils, helpers or manager', () => {
    for (const file of tracked.filter((name) => /^(src|native|bench|test|deploy)\//.test(name))) {
      expect(path.basename(file), file).not.toMatch(/^(utils?|helpers?|common|misc)\b|manager/i);
    }
  });

  it('files stay within 500 lines', () => {
    for (const [file, content] of text) {
      if (/^(src|native|bench|test|deploy)\//.test(file)) {
        expect(content.split('\n').length, file).toBeLessThanOrEqual(501);
      }
    }
  });

  it('functions stay within 80 lines', async () => {
    expect([...(await longFunctionsOfTypeScript(root)), ...longFunctionsOfCpp(text)]).toEqual([]);
  });

  it('folders stay within 16 files', () => {
    const files = tracked.filter((name) => /^(src|native|bench|test|clients|packages|deploy)\//.test(name));
    for (const [folder, inside] of Map.groupBy(files, (file) => path.posix.dirname(file)))
      expect(inside.length, folder).toBeLessThanOrEqual(16);
  });

  it('the kernels include neither N-API nor file-system headers', () => {
    const kernels = [...text.keys()].filter((file) => file.startsWith('native/kernels/'));
    expect(kernels.length).toBeGreaterThan(0);
    for (const file of kernels) {
      expect(text.get(file), file).not.toMatch(
        /#include\s*[<"](napi|node_api|fstream|filesystem|fcntl|sys\/mman|thread|mutex)/,
      );
    }
  });

  it('the lock file records no download addresses', () => {
    expect(readFileSync(path.join(root, 'package-lock.json'), 'utf8')).not.toMatch(/"resolved"/);
  });
});
