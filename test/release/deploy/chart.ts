/** The chart, rendered by Helm as it stands in a folder like `deploy`. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseAllDocuments } from 'yaml';
import { run } from '../../../clients/tools/install.ts';
import { installChecks } from '../../../deploy/local/install.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';

export const deploy = path.resolve(import.meta.dirname, '../../../deploy');
export const chart = 'helm/maxsimd';

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  // oxlint-disable-next-line typescript/no-explicit-any -- as many shapes as kinds
  readonly [field: string]: any;
}

export interface Release {
  readonly notes: string;
  /** All objects, as YAML. */
  readonly text: string;
  readonly manifests: readonly Manifest[];
}

/** Rejects with what Helm finds wrong. */
export async function render(folder: string, ...variants: readonly object[]): Promise<readonly Release[]> {
  const { python } = await installChecks();
  const file = path.join(await newDirectory(), 'values.json');
  writeFileSync(file, JSON.stringify(variants));
  const script = path.join(import.meta.dirname, 'render.py');
  const output = await run(path.join(python, 'python'), [script, path.join(folder, chart), file], folder);
  return (JSON.parse(output) as readonly Readonly<Record<string, string>>[]).map((templates) => {
    const files = Object.entries(templates).filter(([name]) => name.endsWith('.yaml'));
    const text = files.map(([, content]) => content).join('\n---\n');
    return {
      notes: templates['maxsimd/templates/NOTES.txt'] ?? '',
      text,
      manifests: parseAllDocuments(text)
        .map((document) => document.toJS() as Manifest | null)
        .filter((manifest) => manifest !== null),
    };
  });
}

/** By the schemas of a version of Kubernetes. It has none for the objects of the Prometheus operator. */
export async function validate(version: string, releases: readonly Release[]): Promise<void> {
  const { python } = await installChecks();
  const file = path.join(await newDirectory(), 'manifests.yaml');
  writeFileSync(file, releases.map(({ text }) => text).join('\n---\n'));
  const options = ['--strict', '--quiet', '--no-warn', '-k', version];
  await run(path.join(python, 'kubernetes-validate'), [...options, file], path.dirname(file));
}

export function objects({ manifests }: Release, kind: string): readonly Manifest[] {
  return manifests.filter((manifest) => manifest.kind === kind);
}

export function object(release: Release, kind: string, name = 'release'): Manifest {
  const found = objects(release, kind).filter(({ metadata }) => metadata.name === name);
  if (found.length !== 1) throw new Error(`there are ${found.length} objects ${kind} ${name}`);
  return found[0]!;
}
