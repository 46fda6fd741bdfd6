/** The console of operators in a real browser, at the admin listener of a real service. */
import { mkdirSync } from 'node:fs';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';

import { accessibilityFaults, isTooWide, missingBrowser, type Page } from '../support/browser.ts';
import { rounds } from '../rounds.ts';
import { runHere } from '../support/commands/command-here.ts';
import { startPathProxy } from '../support/network/path-proxy.ts';
import { connect, type Client } from '../support/running/client.ts';
import { makeIndex, put } from '../support/running/requests.ts';
import { useAdminServer } from '../support/running/server.ts';
import { looks, pictures, useBrowser } from './console-page.ts';

const reason = missingBrowser();

describe.skipIf(reason !== undefined)(
  `the console of operators${reason === undefined ? '' : `: ${reason}`}`,
  () => {
    const { operatorKey, adminUrl, server } = useAdminServer();
    const { open, expectClosed } = useBrowser(() => `${adminUrl()}/admin/console`);

    beforeAll(() => void mkdirSync(pictures, { recursive: true }));

    test.each(looks.slice(0, rounds({ short: 2, nightly: 4 })))(
      'a tenant from its first key to its end ($scheme, $width)',
      async (look) => {
        const page = await open(look);
        const seen = async (view: string): Promise<void> => {
          await page.screenshot({
            path: `${pictures}/operators-${view}-${look.scheme}-${look.width}.png`,
            fullPage: true,
          });
          expect(await accessibilityFaults(page), view).toEqual([]);
          expect(await isTooWide(page), view).toBe(false);
        };
        const press = (name: string) => page.getByRole('button', { name, exact: true }).click();
        await page.getByLabel('Operator key').fill(operatorKey);
        await seen('sign-in');
        await press('Sign in');
        const name = `acme ${look.scheme} ${look.width}`;
        await page.getByLabel('Name of a new tenant').fill(name);
        await press('Create');
        const key = (await page.getByText('shown this once').locator('code').textContent()) ?? '';
        const client = connect(server().url, key);
        expect((await client.listIndexes()).status).toBe(200);
        await page.getByRole('link', { name }).waitFor();
        await seen('tenants');
        await expectUsed(page, client, name);
        await page.getByRole('link', { name }).click();
        // The plots and the table of keys move the form down when they come.
        await page.getByRole('img', { name: 'Requests' }).waitFor();
        await page.getByRole('table', { name: 'Keys' }).waitFor();
        const keys = page.getByRole('table', { name: 'Keys' });
        // The first key was used a moment ago.
        await keys.getByText(/^\d{4}-\d\d-\d\d \d\d:\d\d$/).waitFor();
        await page.getByLabel('Name of a new key').fill('nightly import');
        await page.getByLabel('read only').check();
        await press('Create a key');
        await page.getByText('shown this once').waitFor();
        await page.getByRole('button', { name: 'Copy' }).click();
        await page.getByRole('button', { name: 'Copied' }).waitFor();
        const named = keys.getByRole('row', { name: 'nightly import' });
        await named.getByText('–').waitFor();
        await page.getByLabel('Requests a minute').fill('7');
        await page.getByLabel('Stored documents').fill('unlimited');
        await page.getByRole('form', { name: 'Limits' }).getByRole('button').click();
        await page.getByText('The limits are saved.').waitFor();
        await seen('tenant');
        await page.reload();
        await keys.waitFor();
        const limits = ['Requests a minute', 'Input tokens a month', 'Stored documents'];
        const values = limits.map((limit) => page.getByLabel(limit).inputValue());
        expect(await Promise.all(values)).toEqual(['7', '50000000', 'unlimited']);
        await press('Suspend');
        await page.getByText(`All programs of ${name} stop working`).waitFor();
        await press('Keep it active');
        expect((await client.listIndexes()).status).toBe(200);
        await press('Suspend');
        await seen('suspend');
        await press(`Suspend ${name}`);
        await page.getByRole('button', { name: 'Resume' }).waitFor();
        await expect.poll(async () => (await client.listIndexes()).status).toBe(403);
        await page.getByRole('button', { name: 'Revoke' }).first().click();
        await press('Revoke for good');
        await page.getByText(/^revoked/).waitFor();
        const id = page.url().split('/').at(-1) ?? '';
        await page.getByRole('link', { name: 'Audit' }).click();
        const suspended = page.getByRole('row', { name: 'tenant suspended' }).first();
        expect(await suspended.getByRole('link', { name }).getAttribute('title')).toBe(id);
        await suspended.getByRole('link', { name }).click();
        await page.getByLabel(/^Write/).fill(name);
        await press('Delete the tenant');
        await page.getByRole('heading', { name: 'Tenants' }).waitFor();
        await expect.poll(async () => (await client.listIndexes()).status).toBe(401);
        await page.getByRole('link', { name: 'Audit' }).click();
        const deleted = page.getByRole('row', { name: 'tenant deleted' }).first();
        // An erased tenant has no name any more.
        await deleted.getByText(id).waitFor();
        await page.getByText('documents unlimited').first().waitFor();
        const word = page.getByRole('link', { name: 'default', exact: true }).first();
        expect((await word.boundingBox())?.height).toBeLessThan(30);
        await seen('audit');
        await press('Sign out');
        await page.reload();
        await page.getByLabel('Operator key').waitFor();
        await expectClosed(page);
      },
    );

    test('works behind a path of a proxy, and so does the command line', async () => {
      const proxy = await startPathProxy('/ops', `${adminUrl()}/admin`);
      onTestFinished(() => proxy.close());
      const page = await open({ scheme: 'light', width: 1280 }, `${proxy.url}/console`);
      await page.getByLabel('Operator key').fill(operatorKey);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('heading', { name: 'Tenants' }).waitFor();
      await page.reload();
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.getByLabel('Operator key').waitFor();
      expect(await page.context().cookies()).toEqual([]);
      expect(proxy.strays).toEqual([]);
      await expectClosed(page);

      const whole = await startPathProxy('/ops', adminUrl());
      onTestFinished(() => whole.close());
      const listed = await runHere(['tenant', 'list', '--admin-url', whole.url, '--json'], {
        environment: { MAXSIMD_ADMIN_KEY: operatorKey },
      });
      expect(listed).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('tenant_id') });
    });
  },
);

/** The list of tenants has the usage of this month beside the limits. */
async function expectUsed(page: Page, client: Client, name: string): Promise<void> {
  const { id } = await makeIndex(client);
  await put(client, id, [{ doc_id: 'bee', text: 'Bees dance.' }]);
  await expect
    .poll(async () => {
      await page.reload();
      await page.getByRole('link', { name }).waitFor();
      const cells = await page.getByRole('row', { name }).getByRole('cell').allTextContents();
      return cells.slice(1, 4);
    })
    .toEqual(['1of 100,000', expect.stringMatching(/^[1-9]of 50,000,000$/), '3']);
}
