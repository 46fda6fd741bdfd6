/**
 * Makes the types of both clients from the OpenAPI document: `node clients/tools/generate.ts` rewrites the files in the
 * repository, and a test compares them with what it gets.
 */
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { createRequestObserver } from '../../src/http/observation.ts';
import { createHttpServer } from '../../src/http/server.ts';
import { createLogger } from '../../src/observation/logging.ts';
import { createMetrics } from '../../src/observation/metrics.ts';
import type { Service } from '../../src/service/contract.ts';
import { nodeTools, pythonEnvironment, run } from './install.ts';

const root = path.resolve(import.meta.dirname, '../..');
const builds = path.join(root, 'build/clients');

/** Where each file belongs in the repository. */
export const generatedFiles = {
  typescript: 'clients/typescript/src/schema.ts',
  python: 'clients/python/src/maxsimd/models.py',
} as const;

const pythonOptions = [
  '--input-file-type=openapi',
  '--output-model-type=pydantic_v2.BaseModel',
  '--target-python-version=3.10',
  '--enum-field-as-literal=all',
  '--use-standard-collections',
  '--use-union-operator',
  '--use-annotated',
  '--use-double-quotes',
  '--disable-timestamp',
  '--openapi-scopes=schemas',
  '--formatters=builtin',
];

/** The document that a running service answers with. */
export async function openApiDocument(): Promise<string> {
  const app = await createHttpServer({
    // The description calls no operation.
    service: {} as Service,
    observer: createRequestObserver(createLogger({ level: 'silent' }), createMetrics()),
  });
  const answer = await app.inject({ url: '/openapi.json' });
  await app.close();
  return answer.body;
}

export async function writeDocument(file: string): Promise<void> {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, await openApiDocument());
}

/** Types in TypeScript of the objects that `types.ts` names. */
export async function generateTypescript(document: string, target: string): Promise<void> {
  const types = readFileSync(path.join(root, 'clients/typescript/src/types.ts'), 'utf8');
  const objects = writeObjects(document, namesIn(types, /Schemas\['(\w+)'\]/g));
  const options = ['--immutable', '--empty-objects-unknown'];
  await run(
    path.join(await nodeTools(), 'openapi-typescript'),
    [objects, '--output', target, ...options],
    root,
  );
}

export function generatorsOfPython(): Promise<string> {
  return pythonEnvironment('generators', path.join(import.meta.dirname, 'requirements.txt'));
}

/** Models of the objects that the Python client imports. */
export async function generatePython(document: string, target: string): Promise<void> {
  const folder = path.join(root, path.dirname(generatedFiles.python));
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.py'),
  );
  const sources = files.map((file) => readFileSync(path.join(folder, file), 'utf8')).join('\n');
  const imports = namesIn(sources, /models import (\([^)]*\)|.*)/g).join();
  await makePython(writeObjects(document, namesIn(imports, /(\w+)/g)), target);
}

/** Models of all objects of an OpenAPI document. */
export async function makePython(document: string, target: string): Promise<void> {
  const program = path.join(await generatorsOfPython(), 'datamodel-codegen');
  await run(program, ['--input', document, '--output', target, ...pythonOptions], root);
  // The name of the input is that of a file of the moment.
  const text = readFileSync(target, 'utf8');
  writeFileSync(target, text.replace(/^# {3}filename: .*\n/m, '#   filename:  openapi.json\n'));
}

function namesIn(text: string, pattern: RegExp): readonly string[] {
  return [...text.matchAll(pattern)].map(([, name = '']) => name);
}

/**
 * Writes a document of these objects and those that they hold. A client needs no operations, and no objects that its few
 * methods do not name. Examples are left out, because the documentation has them.
 */
function writeObjects(document: string, names: readonly string[]): string {
  const whole = JSON.parse(readFileSync(document, 'utf8'), (key, value: unknown) =>
    ['example', 'examples'].includes(key) ? undefined : value,
  ) as { readonly components: { readonly schemas: Readonly<Record<string, unknown>> } };
  const reached = new Set<string>();
  const reach = (name: string): void => {
    const schema = whole.components.schemas[name];
    if (schema === undefined || reached.has(name)) return;
    reached.add(name);
    for (const inner of namesIn(JSON.stringify(schema), /"#\/components\/schemas\/(\w+)"/g)) reach(inner);
  };
  for (const name of names) reach(name);
  const schemas = Object.fromEntries(
    Object.entries(whole.components.schemas).filter(([name]) => reached.has(name)),
  );
  const file = path.join(builds, 'objects.json');
  writeFileSync(file, JSON.stringify({ ...whole, paths: {}, components: { ...whole.components, schemas } }));
  return file;
}

if (import.meta.main) {
  const document = path.join(builds, 'openapi.json');
  await writeDocument(document);
  await generateTypescript(document, path.join(root, generatedFiles.typescript));
  await generatePython(document, path.join(root, generatedFiles.python));
}
