/** The console of operators in a real browser, at the admin listener of a real service. */
import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { freePort } from '../../deploy/local/free-port.ts';
import { accessibilityFaults, isTooWide, missingBrowser } from '../support/browser.ts';
import { rounds } from '../rounds.ts';
import { connect } from '../support/running/client.ts';
import { makeScratch } from '../support/running/launch.ts';
import { startServer, type ServerProcess } from '../support/running/server.ts';
import { looks, pictures, useBrowser } from './console-page.ts';

const reason = missingBrowser();
const operatorKey = randomBytes(32).toString('hex');

describe.skipIf(reason !== undefined)(
  `the console of operators${reason === undefined ? '' : `: ${reason}`}`,
  () => {
    let server: ServerProcess;
    let adminUrl: string;
    const { open, expectClosed } = useBrowser(() => `${adminUrl}/admin/console`);

    beforeAll(async () => {
      mkdirSync(pictures, { recursive: true });
      const scratch = await makeScratch();
      const file = path.join(scratch.root, 'operators');
      await writeFile(file, `${operatorKey}\n`);
      const port = await freePort();
      adminUrl = `http://127.0.0.1:${port}`;
      const env = { MAXSIMD_ADMIN_PORT: String(port), MAXSIMD_ADMIN_KEY_FILE: file };
      server = await startServer({ scratch, env, sharedEncoder: true });
    });
    afterAll(async () => {
      await server.stop();
      await server.scratch.remove();
    });

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
        const client = connect(server.url, key);
        expect((await client.listIndexes()).status).toBe(200);
        await page.getByRole('link', { name }).waitFor();
        await seen('tenants');
        await page.getByRole('link', { name }).click();
        await page.getByLabel('read only').check();
        await press('Create a key');
        await page.getByText('shown this once').waitFor();
        await page.getByLabel('Requests a minute').fill('7');
        await page.getByRole('form', { name: 'Limits' }).getByRole('button').click();
        await page.getByText('The limits are saved.').waitFor();
        await seen('tenant');
        await press('Suspend');
        await page.getByRole('button', { name: 'Resume' }).waitFor();
        await expect.poll(async () => (await client.listIndexes()).status).toBe(403);
        await page.getByRole('button', { name: 'Revoke' }).first().click();
        await press('Revoke for good');
        await page.getByText(/^revoked/).waitFor();
        await page.getByLabel(/^Write/).fill(name);
        await press('Delete the tenant');
        await page.getByRole('heading', { name: 'Tenants' }).waitFor();
        await expect.poll(async () => (await client.listIndexes()).status).toBe(401);
        await page.getByRole('link', { name: 'Audit' }).click();
        await page.getByText('tenant deleted').first().waitFor();
        await seen('audit');
        await press('Sign out');
        await page.reload();
        await page.getByLabel('Operator key').waitFor();
        await expectClosed(page);
      },
    );
  },
);
