/**
 * Keeps the structure: imports flow downward, each third-party engine has one importer, the environment
 * is read by program entries only, names and sizes stay within the house rules.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';

const root = path.resolve(import.meta.dirname, '..');
const tracked = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => file !== '');
const sources = tracked.filter((file) => file.startsWith('src/') && file.endsWith('.ts'));
const text = new Map<string, string>();
for (const file of tracked.filter((name) => /\.(tsx?|mjs|cc|cpp|h|hpp|c)$/.test(name))) {
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

/** Layer -> layers of `src` that it may import, besides itself and the shared files. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  app: ['http', 'service', 'encoder', 'index', 'catalog'],
  http: ['service'],
  service: ['encoder', 'index', 'catalog'],
  encoder: [],
  index: [],
  catalog: [],
  console: [],
  cli: ['catalog', 'encoder', 'index', 'service'],
};

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

/** Files of `src` that every layer may import. */
const shared = sources.filter((file) => /^src\/[^/]+\.ts$/.test(file));

describe('layers', () => {
  it.each(sources.filter((file) => layerOf(file) in allowed))('%s imports downward only', (file) => {
    const layer = layerOf(file);
    for (const { specifier, typeOnly } of importsOf(file)) {
      if (!specifier.startsWith('.')) continue;
      const target = resolved(file, specifier);
      if (!target.startsWith('src/') || shared.includes(target)) continue;
      if (layer === 'cli' && /^src\/app\/(serve|config)\.ts$/.test(target)) continue;
      // Plain row types of the catalog contract travel through the service's own contract.
      if (layer === 'http' && typeOnly && target === 'src/catalog/contract.ts') continue;
      const targetLayer = layerOf(target);
      expect([layer, ...(allowed[layer] ?? [])], `${file} imports ${target}`).toContain(targetLayer);
    }
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

describe('benchmarks and tests', () => {
  const importersOf = (folder: string, targets: RegExp): readonly string[] =>
    [...text.keys()].filter(
      (file) =>
        file.startsWith(folder) &&
        importsOf(file).some(({ specifier }) => targets.test(resolved(file, specifier))),
    );

  it('no benchmark imports the command line', () => {
    expect(importersOf('bench/', /^src\/cli\//)).toEqual([]);
  });

  it('no test imports a benchmark: it runs one, and the parts of one are tested beside it', () => {
    expect(importersOf('test/', /^bench\//)).toEqual([]);
  });

  it('no benchmark imports a test or its environment, nor does the program import either', () => {
    expect(importersOf('bench/', /^test\//)).toEqual([]);
    expect(importersOf('src/', /^(bench|test)\//)).toEqual([]);
  });

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
  /** From the bottom up: each may include what stands before it. */
  const order = [
    'kernels',
    'files',
    'store',
    'runtime',
    'device',
    'codes',
    'index',
    'candidates',
    'search',
    'binding',
  ];
  it.each([...text.keys()].filter((file) => /^native\/(?!test|sqlite)/.test(file)))(
    '%s includes downward only',
    (file) => {
      const [, room = ''] = file.split('/');
      expect(order).toContain(room);
      for (const [, included = ''] of (text.get(file) ?? '').matchAll(/#include "([a-z]+)\//g)) {
        expect(order.slice(0, order.indexOf(room) + 1), `${file} includes ${included}`).toContain(included);
      }
    },
  );
});

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
    'csv-parse',
    'hyparquet',
    'tar',
    'undici',
    'yaml',
    'grpc-health-check',
    '@grpc/proto-loader',
  ];
  it.each(engines)('%s has exactly one importer in src', (engine) => {
    const importers = sources.filter((file) =>
      importsOf(file).some(
        (item) => !item.typeOnly && (item.specifier === engine || item.specifier.startsWith(`${engine}/`)),
      ),
    );
    expect(importers).toHaveLength(1);
  });

  it('the console imports Preact, types of the client and itself alone', () => {
    for (const file of tracked.filter((name) => /^src\/console\/.*\.tsx?$/.test(name))) {
      for (const { specifier } of importsOf(file)) {
        if (specifier.startsWith('.')) expect(resolved(file, specifier), file).toMatch(/^src\/console\//);
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

  it('only the typed wrapper loads the addon', () => {
    const loaders = sources.filter((file) => (text.get(file) ?? '').includes('maxsimd.node'));
    expect(loaders).toEqual(['src/index/engine/native.ts']);
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
