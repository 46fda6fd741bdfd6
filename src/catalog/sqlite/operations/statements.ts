/** A statement that several sets of operations run. */
import type { Connection } from '../connection.ts';

export function indexKeyById(connection: Connection) {
  return connection.prepare<[string], number>('SELECT index_key FROM indexes WHERE id = ?').pluck();
}
