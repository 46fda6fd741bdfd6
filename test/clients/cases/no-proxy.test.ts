/** Which addresses NO_PROXY leaves out. The Python client passes the same cases. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { isThisMachine, isUnproxied } from '../../../clients/typescript/src/no-proxy.ts';

interface Case {
  readonly url: string;
  readonly no_proxy: string;
  readonly direct: boolean;
}

const cases = JSON.parse(
  readFileSync(path.join(import.meta.dirname, 'no-proxy.json'), 'utf8'),
) as readonly Case[];

describe('NO_PROXY', () => {
  test.each(cases)('$no_proxy of $url: $direct', ({ url, no_proxy: noProxy, direct }) => {
    expect(isThisMachine(new URL(url)) || isUnproxied(new URL(url), noProxy)).toBe(direct);
  });
});
