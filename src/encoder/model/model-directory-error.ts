/** A directory that cannot be served as a model. Its message is for the operator. */
export class ModelDirectoryError extends Error {
  override readonly name = 'ModelDirectoryError';
}

export function unreadable(file: string, cause: unknown): ModelDirectoryError {
  return new ModelDirectoryError(`cannot read ${file}: ${(cause as Error).message}`, { cause });
}
