/**
 * Makes the pictures of the console in `docs/guide/console`, in Debian's Chromium, of a running service with SciFact in an index:
 *
 *     npm run --silent maxsimd -- import DIRECTORY --index scifact
 *     node docs/console-pictures.ts --corpus DIRECTORY/corpus.jsonl
 *
 * with `MAXSIMD_URL`, `MAXSIMD_API_KEY`, `MAXSIMD_ADMIN_URL` and `MAXSIMD_ADMIN_KEY` as for every command. The operators' pages show
 * the tenant `default`, to which the index belongs.
 */
import { createReadStream } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { chromium, type Page } from 'playwright-core';
import { documentText } from '../src/cli/beir/directory.ts';

const query = 'Does vitamin D deficiency raise the risk of multiple sclerosis?';
const looks = [
  { name: 'wide', colorScheme: 'light', viewport: { width: 1280, height: 900 } },
  { name: 'narrow', colorScheme: 'dark', viewport: { width: 390, height: 844 } },
] as const;
const folder = path.join(import.meta.dirname, 'guide', 'console');

const { values } = parseArgs({
  options: {
    corpus: { type: 'string' },
    index: { type: 'string', default: 'scifact' },
    url: { type: 'string', default: process.env['MAXSIMD_URL'] ?? 'http://127.0.0.1:8080' },
  },
});
const { corpus, index, url } = values;
const { MAXSIMD_API_KEY: key, MAXSIMD_ADMIN_URL: adminUrl, MAXSIMD_ADMIN_KEY: adminKey } = process.env;
if (corpus === undefined || key === undefined || adminUrl === undefined || adminKey === undefined)
  throw new Error('--corpus, MAXSIMD_API_KEY, MAXSIMD_ADMIN_URL and MAXSIMD_ADMIN_KEY are needed');

const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
for (const { name: look, ...options } of looks) {
  const page = await browser.newPage(options);
  await signIn(page, `${url}/console`, 'API key', key, () => picture(page, 'sign-in', look));
  await page.getByRole('link', { name: index }).waitFor();
  await page.getByRole('meter').first().waitFor();
  await picture(page, 'overview', look);
  await page.getByRole('link', { name: index }).click();
  await page.getByLabel('Query', { exact: true }).fill(query);
  await page.getByRole('button', { name: 'Search', exact: true }).click();
  const first = page.locator('.results > li').first();
  const docId = await first.locator('.doc-id').textContent();
  await picture(page, 'search', look);
  await first.getByText('Why this score').click();
  await first.getByLabel(/^Text of the document/).fill(await textOf(docId ?? '', corpus));
  await first.getByRole('button', { name: 'Show' }).click();
  await first.locator('mark').first().waitFor();
  await first.getByRole('button', { name: 'vitamin', exact: true }).click();
  await first.evaluate((element) => element.scrollIntoView());
  await picture(page, 'alignment', look);
  await page.getByRole('link', { name: 'Documents' }).click();
  await page.getByText('Add documents').click();
  await page.locator('tbody a').first().waitFor();
  await page.evaluate('scrollTo(0, 0)');
  await picture(page, 'documents', look);
  await page.getByText('Add documents').click();
  await page.getByRole('button', { name: 'Add a condition' }).click();
  await page.getByRole('combobox', { name: 'Condition' }).selectOption('is at least');
  await page.getByLabel('Value').fill('The ');
  const before = await page.locator('tbody a').first().textContent();
  await page.getByRole('button', { name: 'Show' }).click();
  await page.getByRole('link', { name: before ?? '' }).waitFor({ state: 'detached' });
  await picture(page, 'matching', look);
  await page.getByRole('link', { name: 'Settings' }).click();
  await page.getByRole('heading', { name: 'Delete' }).waitFor();
  await picture(page, 'settings', look);
  await page.getByRole('link', { name: 'Usage' }).click();
  await page.getByRole('meter').first().waitFor();
  await picture(page, 'usage', look);
  await signIn(page, `${adminUrl}/admin/console`, 'Operator key', adminKey);
  await page.getByRole('link', { name: 'default' }).waitFor();
  await picture(page, 'tenants', look);
  await page.getByRole('link', { name: 'default' }).click();
  await page.getByRole('table', { name: 'Keys' }).waitFor();
  await page.getByRole('img', { name: 'Requests' }).waitFor();
  await picture(page, 'tenant', look);
  await page.getByRole('link', { name: 'Audit' }).click();
  await page.getByRole('table', { name: 'Audit' }).waitFor();
  await picture(page, 'audit', look);
  await page.close();
}
await browser.close();

async function signIn(
  page: Page,
  address: string,
  label: string,
  secret: string,
  before = async () => {},
): Promise<void> {
  await page.goto(address);
  await page.getByLabel(label).waitFor();
  await before();
  await page.getByLabel(label).fill(secret);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

async function picture(page: Page, view: string, look: string): Promise<void> {
  await page.screenshot({ path: path.join(folder, `${view}-${look}.png`) });
}

async function textOf(docId: string, file: string): Promise<string> {
  for await (const line of createInterface({ input: createReadStream(file) })) {
    const row = JSON.parse(line) as Readonly<Record<string, string>>;
    if ((row['doc_id'] ?? row['_id'] ?? row['id']) === docId)
      return documentText(row['title'] ?? '', row['text'] ?? '');
  }
  throw new Error(`${file} has no document ${docId}`);
}
