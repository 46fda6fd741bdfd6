import { expect, test } from 'vitest';

import { generateApiKey, hashApiKey } from '../../src/catalog/api-key.ts';
import type { KeyRecord } from '../../src/catalog/contract.ts';
import { sessionMs, Sessions } from '../../src/service/session.ts';

const pepper = new Uint8Array(32).fill(7);
const nowMs = Date.UTC(2026, 5, 1);

function recordOf(): KeyRecord {
  const { id, apiKey } = generateApiKey();
  return { key: { id }, hash: hashApiKey(apiKey, pepper) } as KeyRecord;
}

test('a session names its key until it expires, on every node with the same pepper', () => {
  const record = recordOf();
  const session = new Sessions(pepper).open(record, nowMs);
  const elsewhere = new Sessions(pepper);
  expect(elsewhere.keyIdOf(session, nowMs + sessionMs - 1)).toBe(record.key.id);
  expect(elsewhere.matches(session, record)).toBe(true);
  expect(elsewhere.keyIdOf(session, nowMs + sessionMs)).toBeUndefined();
});

test('a session holds for no other key, and for no node with another pepper', () => {
  const record = recordOf();
  const session = new Sessions(pepper).open(record, nowMs);
  expect(new Sessions(pepper).matches(session, { ...recordOf(), key: record.key })).toBe(false);
  expect(new Sessions(new Uint8Array(32)).matches(session, record)).toBe(false);
});

test('a forged session whose key no catalog can have is none', () => {
  const sessions = new Sessions(pepper);
  const genuine = recordOf();
  for (const id of [`${'a'.repeat(11)}\0`, `${'a'.repeat(11)}é`, `${'a'.repeat(11)} `]) {
    const forged = sessions.open({ ...genuine, key: { ...genuine.key, id } }, nowMs);
    expect(sessions.keyIdOf(forged, nowMs)).toBeUndefined();
  }
});

test('no other text is a session', () => {
  const sessions = new Sessions(pepper);
  const session = sessions.open(recordOf(), nowMs);
  for (const text of [
    '',
    'a',
    session.slice(1),
    `${session}a`,
    '!'.repeat(session.length),
    ' '.repeat(session.length),
  ]) {
    expect(sessions.keyIdOf(text, nowMs)).toBeUndefined();
  }
});
