/** The service behind a path of a proxy that strips it: the pages in a browser, and the programs that ask the API. */
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { Client as McpClient } from '@modelcontextprotocol/sdk/client/index.js';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';

import { Maxsimd } from '../../clients/typescript/src/index.ts';
import { missingBrowser } from '../support/browser.ts';
import { runHere } from '../support/commands/command-here.ts';
import { startPathProxy, type PathProxy } from '../support/network/path-proxy.ts';
import { call } from '../support/running/client.ts';
import { makeIndex, put } from '../support/running/requests.ts';
import { useSharedStage } from '../support/running/stage.ts';
import { useConsole } from './console-page.ts';

const reason = missingBrowser();
const look = { scheme: 'light', width: 1280 } as const;
const stage = useSharedStage();
let proxy: PathProxy;
let index: { readonly id: string; readonly name: string };

beforeAll(async () => {
  proxy = await startPathProxy('/tools/maxsimd', stage.server.url);
  index = await makeIndex(stage.client, { name: 'behind a path' });
  await put(stage.client, index.id, [
    { doc_id: 'bee/1', text: 'Honey bees dance.' },
    { doc_id: 'whale', text: 'The blue whale is large.' },
  ]);
  return () => proxy.close();
});
/** A stray would have reached another program of the host. */
function expectNoStrays(): void {
  expect(proxy.strays.splice(0)).toEqual([]);
}
afterEach(expectNoStrays);

describe.skipIf(reason !== undefined)(
  `pages behind a path${reason === undefined ? '' : `: ${reason}`}`,
  () => {
    const { open, signIn, expectClosed } = useConsole(stage, () => `${proxy.url}/console`);

    test.each(['', '/'])('sign in, search, reload and sign out, at /console%s', async (slash) => {
      const page = await open(look, `${proxy.url}/console${slash}`);
      await signIn(page);
      await page.getByRole('link', { name: index.name }).click();
      await page.getByLabel('Query', { exact: true }).fill('how do insects dance?');
      await page.getByRole('button', { name: 'Search', exact: true }).click();
      const found = () => page.locator('.result h2').allTextContents();
      await expect.poll(found).toEqual(['bee/1', 'whale']);
      await page.reload();
      await expect.poll(found).toEqual(['bee/1', 'whale']);
      await page.getByText('This search as code').click();
      expect(await page.getByLabel('Search in curl').textContent()).toContain(`MAXSIMD_URL=${proxy.url}\n`);
      const cookies = await page.context().cookies();
      const { pathname } = new URL(`${proxy.url}/console`);
      expect(cookies.map(({ path, httpOnly }) => ({ path, httpOnly }))).toEqual([
        { path: pathname, httpOnly: true },
      ]);
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.getByLabel('API key').waitFor();
      expect(await page.context().cookies()).toEqual([]);
      await expectClosed(page);
    });

    test('the page of the API sends its requests to where it came from', async () => {
      const page = await open(look, `${proxy.url}/docs`);
      await page.locator('[data-path="/healthz"]').click();
      await page.getByRole('button', { name: 'Execute' }).click();
      const sent = page.locator('.request-url pre');
      expect(await sent.textContent()).toBe(`${proxy.url}/healthz`);
      await page.locator('.live-responses-table').getByText('200').first().waitFor();
      await expectClosed(page);
    });
  },
);

test('addresses in answers lead back to the path', async () => {
  const { key } = stage.tenant;
  const root = await call(`${proxy.url}/`);
  for (const address of Object.values(root.body as Readonly<Record<string, string>>).slice(1))
    expect((await call(new URL(address, `${proxy.url}/`).href)).status, address).toBe(200);
  const indexes = `${proxy.url}/v1/indexes`;
  const made = await call(indexes, { key, body: { name: index.name, if_exists: 'return' } });
  const location = new URL(made.headers.get('location') ?? '', indexes).href;
  expect((await call(location, { key })).body).toMatchObject({ id: index.id });
  const page = `${proxy.url}/docs/`;
  const [, script = ''] = /src="([^"]+)"/.exec((await call(page)).text) ?? [];
  expect((await call(new URL(script, page).href)).status).toBe(200);
  const redirected = `${page}static/index.html`;
  const { headers } = await call(redirected);
  expect(new URL(headers.get('location') ?? '', redirected).href).toBe(page);
  for (const document of [`${proxy.url}/openapi.json`, `${proxy.url}/docs/json`]) {
    const { servers } = (await call(document)).body as { servers: readonly { url: string }[] };
    expect(servers.map(({ url }) => new URL(url, document).href)).toEqual([`${proxy.url}/`]);
  }
});

test('the TypeScript client, the command line and MCP take an address with a path', async () => {
  const environment = { MAXSIMD_URL: `${proxy.url}/`, MAXSIMD_API_KEY: stage.tenant.key };
  const client = new Maxsimd({ url: environment.MAXSIMD_URL, apiKey: environment.MAXSIMD_API_KEY });
  expect(await client.getDocument(index.id, 'bee/1')).toMatchObject({ doc_id: 'bee/1' });

  const searched = ['search', 'dancing insects', '--index', index.name, '--top-k', '1', '--json'];
  const { stdout } = await runHere(searched, { environment });
  expect(JSON.parse(stdout)).toMatchObject({ results: [{ doc_id: 'bee/1' }] });

  const agent = new McpClient({ name: 'a test', version: '1' });
  const args = ['src/cli/main.ts', 'mcp'];
  await agent.connect(new StdioClientTransport({ command: process.execPath, args, env: environment }));
  const got = await agent.callTool({
    name: 'get_document',
    arguments: { index: index.name, doc_id: 'bee/1' },
  });
  await agent.close();
  expect(got.structuredContent).toMatchObject({ doc_id: 'bee/1' });
});
