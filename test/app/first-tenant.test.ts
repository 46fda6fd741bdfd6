import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { apiKeyMatches, parseApiKey } from '../../src/catalog/api-key.ts';
import { openCatalog } from '../../src/catalog/sqlite/open-catalog.ts';
import { addressLines, greetFirstTenant } from '../../src/app/first-tenant.ts';
import { newDirectory } from '../support/machine/temporary-directory.ts';

const pepper = new Uint8Array(32).fill(3);
const url = 'http://127.0.0.1:8080';

it.each([true, false])('shows the key of the first tenant once; on a terminal: %s', async (terminal) => {
  const directory = await newDirectory();
  const file = path.join(directory, 'first-api-key');
  // A start that was cut short left this.
  if (!terminal) await writeFile(file, 'qkv_live_older', { mode: 0o644 });
  const catalog = await openCatalog({ directory });
  try {
    const greeting = { pepper, url, hasConsole: true, directory, terminal };
    const text = (await greetFirstTenant(catalog, greeting)) ?? '';
    const shown = terminal ? text : await readFile(file, 'utf8');
    const apiKey = /qkv_live_\w+/.exec(shown)?.[0] ?? '';
    const found = await catalog.findKey(parseApiKey(apiKey)?.id ?? '');
    expect(apiKeyMatches(apiKey, pepper, found?.hash ?? new Uint8Array())).toBe(true);
    expect(text.includes('qkv_live_')).toBe(terminal);
    expect(found?.tenant.limits).toEqual({
      requestsPerMinute: 1_000_000,
      maxConcurrentRequests: 64,
      inputTokens: 2n ** 63n - 1n,
      documents: 2 ** 53 - 1,
    });
    // Lines that may be pasted again.
    const readme = await readFile(path.resolve(import.meta.dirname, '../../README.md'), 'utf8');
    const [lines = 'missing'] = /^INDEX=.*\n.*$/m.exec(readme) ?? [];
    expect(text).toContain(lines.replaceAll(/^/gm, '  '));
    if (terminal) await expect(readFile(file)).rejects.toMatchObject({ code: 'ENOENT' });
    expect(text).toContain(addressLines(greeting));
    expect(await greetFirstTenant(catalog, greeting)).toBeUndefined();
  } finally {
    await catalog.close();
  }
});

it('names the console only where there is one', () => {
  expect(addressLines({ url, hasConsole: true })).toContain(`${url}/console `);
  expect(addressLines({ url, hasConsole: false })).toBe(`  HTTP API     ${url}/docs\n`);
});
