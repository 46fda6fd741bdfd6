/** Kinds of columns, as the schema of a Parquet file names them. */
import type { SchemaElement, SchemaTree } from 'hyparquet';

export function isVariant({ logical_type: logical }: SchemaElement): boolean {
  return logical?.type === 'VARIANT';
}

export function isList({ element, children }: SchemaTree): boolean {
  return element.converted_type === 'LIST' && children.length === 1 && children[0]!.children.length <= 1;
}

export function isMap({ element, children }: SchemaTree): boolean {
  return element.converted_type === 'MAP' && children.length === 1 && children[0]!.children.length === 2;
}

/** Writers keep types that Parquet does not have as bytes. */
export function holdsBytes({
  type,
  converted_type: converted,
  logical_type: logical,
}: SchemaElement): boolean {
  const isBytes = type === 'BYTE_ARRAY' || type === 'FIXED_LEN_BYTE_ARRAY';
  return isBytes && converted === undefined && logical === undefined;
}
