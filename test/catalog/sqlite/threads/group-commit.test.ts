import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openReader, openWriter } from '../../../../src/catalog/sqlite/connection.ts';
import type { Connection } from '../../../../src/catalog/sqlite/connection.ts';
import { GroupCommit, sequenceReader } from '../../../../src/catalog/sqlite/threads/group-commit.ts';
import type { Outcome, Work } from '../../../../src/catalog/sqlite/threads/group-commit.ts';
import { migrate, catalogMigrations } from '../../../../src/catalog/sqlite/schema.ts';
import { newDirectory } from '../../../support/machine/temporary-directory.ts';

describe('group commit', () => {
  let file: string;
  let connection: Connection;
  beforeEach(async () => {
    file = path.join(await newDirectory(), 'group.db');
    connection = await openWriter({ path: file, durability: 'process_death', busyTimeoutMs: 50 });
    migrate(connection, catalogMigrations);
    connection.exec('CREATE TABLE numbers (number INTEGER PRIMARY KEY, filler TEXT) STRICT');
  });
  afterEach(() => {
    connection.close();
  });

  const start = (options: { readonly commit?: () => void; readonly readSequence?: () => number } = {}) =>
    new GroupCommit({
      connection,
      writer: 'writer',
      readSequence: sequenceReader(() => openReader(file), 'writer'),
      ...options,
    });
  const insert =
    (number: number, filler = ''): Work =>
    () => {
      connection.prepare('INSERT INTO numbers VALUES (?, ?)').run(number, filler);
      return number;
    };
  const stored = (): readonly unknown[] => {
    const reader = openReader(file);
    const numbers = reader.prepare('SELECT number FROM numbers ORDER BY number').pluck().all();
    reader.close();
    return numbers;
  };
  const summary = (outcomes: readonly Outcome[]): readonly unknown[] =>
    outcomes.map((outcome) => (outcome.ok ? outcome.value : (outcome.error as { code?: string }).code));

  it('commits all operations of a group', () => {
    expect(summary(start().run([insert(1), insert(2), insert(3)]))).toEqual([1, 2, 3]);
    expect(stored()).toEqual([1, 2, 3]);
  });

  it('rolls an operation that fails back alone', () => {
    const halfway: Work = () => {
      insert(2)();
      throw new Error('halfway');
    };
    const outcomes = start().run([insert(1), halfway, insert(3), insert(1)]);
    expect(summary(outcomes)).toEqual([1, undefined, 3, 'SQLITE_CONSTRAINT_PRIMARYKEY']);
    expect(stored()).toEqual([1, 3]);
  });

  it('believes the file when the answer of a COMMIT is lost after it happened', () => {
    const commit = () => {
      connection.exec('COMMIT');
      throw new Error('lost');
    };
    expect(summary(start({ commit }).run([insert(1), insert(2)]))).toEqual([1, 2]);
    expect(stored()).toEqual([1, 2]);
  });

  it('repeats the operations alone when a COMMIT did not happen', () => {
    let failures = 1;
    const commit = () => {
      if (failures-- > 0) throw new Error('lost');
      connection.exec('COMMIT');
    };
    const group = start({ commit });
    expect(summary(group.run([insert(1), insert(2)]))).toEqual([1, 2]);
    failures = 1;
    expect(group.run([insert(3)])).toMatchObject([{ ok: false }]);
    expect(stored()).toEqual([1, 2]);
    expect(summary(group.run([insert(3)]))).toEqual([3]);
  });

  it('stops when the outcome of a COMMIT cannot be read', () => {
    const group = start({
      commit: () => {
        connection.exec('COMMIT');
        throw new Error('lost');
      },
      readSequence: () => {
        throw new Error('unreadable');
      },
    });
    const refused = { ok: false, error: { code: 'service_unavailable' } };
    expect(group.run([insert(1)])).toMatchObject([{ ok: false }]);
    expect(group.run([insert(2), insert(3)])).toMatchObject([refused, refused]);
    expect(stored()).toEqual([1]);
  });

  it('answers service_unavailable while another process holds the database', async () => {
    const other = await openWriter({ path: file, durability: 'process_death', busyTimeoutMs: 50 });
    other.exec('BEGIN IMMEDIATE');
    const group = start();
    expect(summary(group.run([insert(1), insert(2)]))).toEqual([
      'service_unavailable',
      'service_unavailable',
    ]);
    other.exec('COMMIT');
    other.close();
    expect(summary(group.run([insert(1)]))).toEqual([1]);
  });

  it('refuses operations that a full disk has no room for, and commits the others', () => {
    const pages = connection.pragma('page_count', { simple: true }) as number;
    connection.pragma(`max_page_count = ${pages + 20}`);
    const large = 'x'.repeat(30 * 4096);
    const group = start();
    expect(summary(group.run([insert(1), insert(2, large), insert(3)]))).toEqual([
      1,
      'service_unavailable',
      3,
    ]);
    expect(stored()).toEqual([1, 3]);
    expect(connection.pragma('integrity_check', { simple: true })).toBe('ok');
    connection.pragma('max_page_count = 1000000');
    expect(summary(group.run([insert(2, large)]))).toEqual([2]);
  });
});
