/**
 * Makes the types of both clients from the OpenAPI document: `node clients/tools/generate.ts` rewrites the files in the
 * repository, and a test compares them with what it gets.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { createRequestObserver } from '../../src/http/observation.ts';
import { createHttpServer } from '../../src/http/server.ts';
import { createLogger } from '../../src/logging.ts';
import { createMetrics } from '../../src/metrics.ts';
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

/** The objects of the document; its operations, nine tenths of it, are of no use to the client's few methods. */
export async function generateTypescript(document: string, target: string): Promise<void> {
  const objects = path.join(builds, 'objects.json');
  writeFileSync(
    objects,
    JSON.stringify({ ...(JSON.parse(readFileSync(document, 'utf8')) as object), paths: {} }),
  );
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

export async function generatePython(document: string, target: string): Promise<void> {
  const program = path.join(await generatorsOfPython(), 'datamodel-codegen');
  await run(program, ['--input', document, '--output', target, ...pythonOptions], root);
  // The name of the input is that of a file of the moment.
  const text = readFileSync(target, 'utf8');
  writeFileSync(target, text.replace(/^# {3}filename: .*\n/m, '#   filename:  openapi.json\n'));
}

if (import.meta.main) {
  const document = path.join(builds, 'openapi.json');
  await writeDocument(document);
  await generateTypescript(document, path.join(root, generatedFiles.typescript));
  await generatePython(document, path.join(root, generatedFiles.python));
}
