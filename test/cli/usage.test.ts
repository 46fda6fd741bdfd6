/** Usage as CSV: of one tenant, of all, and of the key's own tenant. */
import { parse } from 'csv-parse/sync';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Tenant, UsageDay } from '../../src/catalog/contract.ts';
import { usageCsv } from '../../src/cli/catalog/tenants.ts';
import { csv } from '../../src/cli/output.ts';
import type { Administration } from '../../src/service/administration.ts';
import { ApiDouble } from '../support/http/api-double.ts';
import { newDirectory } from '../support/machine/temporary-directory.ts';
import { runJsonHere } from '../support/commands/command-process.ts';
import { runHere } from '../support/commands/command-here.ts';

const header = 'tenant_id,tenant,day,input_tokens,requests,document_upserts,searches,scores';

function usageOf(day: string, inputTokens: bigint): UsageDay {
  return { day, inputTokens, requests: 4, documentUpserts: 3, searches: 2, scores: 1 };
}

const usage: Readonly<Record<string, readonly UsageDay[]>> = {
  t1: [usageOf('2026-11-01', 9_007_199_254_740_993n), usageOf('2026-11-03', 0n)],
  t2: [],
  t3: [usageOf('2026-11-02', 7n)],
};

/** As far as the commands use it. */
const administration = {
  listTenants: async () =>
    [
      ['t1', 'Acme, "the" one'],
      ['t2', 'idle'],
      ['t3', 'Other'],
    ].map(([id, name]) => ({ id, name }) as Tenant),
  usageDays: async (id: string, from: string, to: string) =>
    (usage[id] ?? []).filter(({ day }) => from <= day && day <= to),
} as Partial<Administration> as Administration;

describe('CSV', () => {
  it('quotes cells that need it, and ends lines as RFC 4180 says', () => {
    const cells = ['plain', 'a,b', 'say "x"', 'two\nlines', 'two\r\nlines', '', ' spaced '];
    const text = `${csv(['a', 'b', 'c', 'd', 'e', 'f', 'g'], [cells])}\n`;
    expect(text).toBe('a,b,c,d,e,f,g\r\nplain,"a,b","say ""x""","two\nlines","two\r\nlines",, spaced \r\n');
    expect(parse(text, { from: 2 })).toEqual([cells]);
  });

  it('of all tenants has a row a tenant and day, token totals to the digit', async () => {
    const { text } = await usageCsv(administration, undefined, { from: '2026-11-01', to: '2026-11-30' });
    expect(text).toBe(
      [
        header,
        't1,"Acme, ""the"" one",2026-11-01,9007199254740993,4,3,2,1',
        't1,"Acme, ""the"" one",2026-11-03,0,4,3,2,1',
        't3,Other,2026-11-02,7,4,3,2,1',
        '',
      ]
        .join('\r\n')
        .slice(0, -1),
    );
  });

  it('of one tenant has its days in the range', async () => {
    const { text } = await usageCsv(administration, 't1', { from: '2026-11-02', to: '2026-11-30' });
    expect(text).toBe(`${header}\r\nt1,"Acme, ""the"" one",2026-11-03,0,4,3,2,1\r`);
  });
});

describe('tenant usage', () => {
  it('--csv prints CSV alone; without it a tenant must be named', async () => {
    const options = { environment: { MAXSIMD_DATA_DIR: await newDirectory() } };
    await runHere(['tenant', 'create', '--name', 'Acme'], options);
    expect((await runHere(['tenant', 'usage', '--csv'], options)).stdout).toBe(`${header}\r\n`);
    expect((await runHere(['tenant', 'usage', 'Acme', '--csv'], options)).stdout).toBe(`${header}\r\n`);
    for (const args of [['usage'], ['usage', '--csv']]) {
      const { exitCode, document } = await runJsonHere(['tenant', ...args], options);
      expect([exitCode, document.error.code]).toEqual([2, 'usage_error']);
    }
  });
});

describe('usage', () => {
  let api: ApiDouble;
  let options: { environment: Record<string, string> };
  beforeEach(async () => {
    api = new ApiDouble();
    options = { environment: { MAXSIMD_API_KEY: 'k', MAXSIMD_URL: await api.listen() } };
  });
  afterEach(() => api.close());

  it('--csv prints the days of the service', async () => {
    api.intercept = ({ path }) =>
      path.startsWith('/v1/usage/days')
        ? {
            body: {
              data: [
                {
                  scores: 5,
                  day: '2026-11-01',
                  input_tokens: '12',
                  requests: 2,
                  document_upserts: 3,
                  searches: 4,
                },
              ],
            },
          }
        : undefined;
    const { stdout, exitCode } = await runHere(['usage', '--csv', '--from', '2026-11-01'], options);
    expect(exitCode).toBe(0);
    expect(stdout).toBe(
      'day,input_tokens,requests,document_upserts,searches,scores\r\n2026-11-01,12,2,3,4,5\r\n',
    );
    expect(api.requests.map(({ path }) => path)).toEqual(['/v1/usage/days?from=2026-11-01']);
  });

  it('refuses a range without --csv', async () => {
    const { exitCode, document } = await runJsonHere(['usage', '--from', '2026-11-01'], options);
    expect([exitCode, document.error.code]).toEqual([2, 'usage_error']);
    expect(api.requests).toEqual([]);
  });
});
