/** The libraries whose exports an import reads (`--from`), and how an export is recognised where none is asked for. */
import { isObject } from '../../json.ts';
import { chroma } from './chroma.ts';
import { elasticdump } from './elasticdump.ts';
import type { Export, JsonObject, RowForm, WholeForm } from './export.ts';
import { haystack } from './haystack.ts';
import { langchain } from './langchain.ts';
import { llamaindex } from './llamaindex.ts';
import { milvus } from './milvus.ts';
import { exportNames, type ExportName } from './names.ts';
import { qdrant } from './qdrant.ts';
import { weaviate } from './weaviate.ts';

export const libraries: Readonly<Record<ExportName, Export>> = {
  langchain,
  llamaindex,
  haystack,
  chroma,
  weaviate,
  milvus,
  qdrant,
  elasticdump,
};

/** The form of a file that is one object, by its beginning. */
export function wholeFormOf({ wholes }: Export, beginning: unknown): WholeForm | undefined {
  return isObject(beginning) ? wholes.find(({ fits }) => fits(beginning)) : undefined;
}

export function rowFormOf({ rows }: Export, row: JsonObject): RowForm | undefined {
  return rows.find(({ fits }) => fits(row));
}

/** Says which library most likely wrote what a JSON file begins with, for a person who named none, or another. */
export function recognised(beginning: unknown, asked: ExportName | undefined): string | undefined {
  const first: unknown = Array.isArray(beginning) ? beginning[0] : beginning;
  if (!isObject(first)) return undefined;
  const name = exportNames.find((candidate) => isOf(libraries[candidate], first));
  return name === undefined || name === asked
    ? undefined
    : `it looks like an export of ${libraries[name].title}, which --from ${name} reads`;
}

function isOf({ wholes, rows }: Export, first: JsonObject): boolean {
  return [...wholes, ...rows.filter(({ isCommon }) => isCommon !== true)].some(({ fits }) => fits(first));
}

/** The forms that it has, for messages. */
export function formsOf(name: ExportName): string {
  const { title, wholes, rows } = libraries[name];
  const words = new Set([...wholes, ...rows].map((form) => form.words));
  return `--from ${name} reads these of ${title}: ${[...words].join('; ')}`;
}
