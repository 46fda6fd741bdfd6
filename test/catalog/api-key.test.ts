import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  apiKeyMatches,
  apiKeyPrefix,
  generateApiKey,
  hashApiKey,
  parseApiKey,
} from '../../src/catalog/api-key.ts';

const pepper = new Uint8Array(32).fill(7);
const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

describe('an API key', () => {
  it('begins with the prefix of the interface and is one word', () => {
    const { apiKey, id } = generateApiKey();
    expect(apiKey).toMatch(/^qkv_live_[0-9A-Za-z]{50}$/);
    expect(apiKey.startsWith(apiKeyPrefix + id)).toBe(true);
    expect(parseApiKey(apiKey)).toEqual({ id });
  });

  it('is new every time, each character equally likely', () => {
    const keys = Array.from({ length: 2000 }, () => generateApiKey());
    expect(new Set(keys.map(({ id }) => id)).size).toBe(keys.length);
    const counts = new Map<string, number>();
    for (const { apiKey } of keys) {
      for (const character of apiKey.slice(apiKeyPrefix.length, -6)) {
        counts.set(character, (counts.get(character) ?? 0) + 1);
      }
    }
    expect([...counts.keys()].toSorted().join('')).toBe(alphabet);
    // 88,000 draws of 62 characters: each about 1,419 times, with a standard deviation of 37. Eight deviations do not happen by chance.
    for (const count of counts.values()) expect(Math.abs(count - 1419)).toBeLessThan(8 * 37);
  });

  it('with one character changed, lost or doubled, or two exchanged, is no key', () => {
    const { apiKey } = generateApiKey();
    const at = fc.integer({ min: 0, max: apiKey.length - 1 });
    const typing = fc.record({ at, kind: fc.constantFrom('change', 'lose', 'double', 'exchange'), to: at });
    fc.assert(
      fc.property(typing, ({ at: place, kind, to }) => {
        const [before, character, after] = [
          apiKey.slice(0, place),
          apiKey[place] ?? '',
          apiKey.slice(place + 1),
        ];
        const mistyped = {
          change: before + (alphabet[(alphabet.indexOf(character) + 1 + (to % 61)) % 62] ?? '') + after,
          lose: before + after,
          double: before + character + character + after,
          exchange: before + after.slice(0, 1) + character + after.slice(1),
        }[kind];
        expect(mistyped === apiKey || parseApiKey(mistyped ?? '') === undefined).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });

  it.each(['', 'qkv_live_', 'Bearer x', `qkv_test_${'a'.repeat(50)}`, `qkv_live_${'ä'.repeat(50)}`])(
    'is not %j',
    (text) => {
      expect(parseApiKey(text)).toBeUndefined();
    },
  );

  it('is no key with anything before or after it', () => {
    const { apiKey } = generateApiKey();
    for (const text of [` ${apiKey}`, `${apiKey}\n`, `${apiKey} `, apiKey.toUpperCase()]) {
      expect(parseApiKey(text)).toBeUndefined();
    }
  });

  it('matches its hash under its pepper and nothing else', () => {
    const [{ apiKey }, other] = [generateApiKey(), generateApiKey()];
    const hash = hashApiKey(apiKey, pepper);
    expect(hash).toHaveLength(32);
    expect(apiKeyMatches(apiKey, pepper, hash)).toBe(true);
    expect(apiKeyMatches(other.apiKey, pepper, hash)).toBe(false);
    expect(apiKeyMatches(apiKey, new Uint8Array(32), hash)).toBe(false);
    expect(apiKeyMatches(apiKey, pepper, hash.subarray(1))).toBe(false);
    expect(apiKeyMatches(apiKey, pepper, new Uint8Array(0))).toBe(false);
  });
});
