/**
 * Makes the pictures of the console in `docs/guide/console`, in Debian's Chromium, of a running service with SciFact in an index:
 *
 *     npm run --silent maxsimd -- import DIRECTORY --index scifact --keep-text text
 *     node docs/console-pictures.ts
 *
 * with `MAXSIMD_URL`, `MAXSIMD_API_KEY`, `MAXSIMD_ADMIN_URL` and `MAXSIMD_ADMIN_KEY` as for every command. The operators' pages show
 * the tenant `default`, to which the index belongs. It uploads nothing. It needs Debian's `pngquant`.
 */
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { chromium, type Locator, type Page } from 'playwright-core';

const query = 'Does vitamin D deficiency raise the risk of multiple sclerosis?';
const table = `sku,label,description,brand,stars
1,Head torch,"A light for the head, of 350 lumens, for 40 hours.",Lumo,4.5
2,Tent for two,"A tent of 1.9 kg that one person pitches in five minutes.",Norr,4.8
`;
const looks = [
  { name: 'wide', colorScheme: 'light', viewport: { width: 1280, height: 900 } },
  { name: 'narrow', colorScheme: 'dark', viewport: { width: 390, height: 844 } },
] as const;
const folder = path.join(import.meta.dirname, 'guide', 'console');
const pictures: string[] = [];

const { values } = parseArgs({
  options: {
    index: { type: 'string', default: 'scifact' },
    url: { type: 'string', default: process.env['MAXSIMD_URL'] ?? 'http://127.0.0.1:8080' },
  },
});
const { index, url } = values;
const { MAXSIMD_API_KEY: key, MAXSIMD_ADMIN_URL: adminUrl, MAXSIMD_ADMIN_KEY: adminKey } = process.env;
if (key === undefined || adminUrl === undefined || adminKey === undefined)
  throw new Error('MAXSIMD_API_KEY, MAXSIMD_ADMIN_URL and MAXSIMD_ADMIN_KEY are needed');

const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
for (const { name: look, ...options } of looks) {
  const page = await browser.newPage(options);
  await picturesOfUsers(page, look);
  await picturesOfOperators(page, look);
  await page.close();
}
await browser.close();
// 128 colours look the same, and take a third of the bytes.
execFileSync('pngquant', ['--force', '--ext=.png', '--strip', '128', ...pictures]);

async function picturesOfUsers(page: Page, look: string): Promise<void> {
  await signIn(page, `${url}/console`, 'API key', key!, () => picture(page, 'sign-in', look));
  await page.getByRole('link', { name: index }).waitFor();
  await page.getByText('Stored documents').waitFor();
  await page.getByText('Last hour').waitFor();
  await picture(page, 'overview', look);
  await page.getByRole('link', { name: index }).click();
  await page.getByLabel('Query', { exact: true }).fill(query);
  await page.getByRole('button', { name: 'Search', exact: true }).click();
  const first = page.locator('.results > li').first();
  await first.locator('mark').first().waitFor();
  await picture(page, 'search', look);
  await scrolledTo(page.getByRole('status'));
  await picture(page, 'passages', look);
  await first.getByText('Why this score').click();
  await first.getByRole('button', { name: 'vitamin', exact: true }).click();
  await scrolledTo(first);
  await picture(page, 'alignment', look);
  await page.getByRole('link', { name: 'Documents' }).click();
  await page.locator('tbody a').first().waitFor();
  await page.evaluate('scrollTo(0, 0)');
  await picture(page, 'documents', look);
  await page.getByText('Add documents').click();
  await page
    .getByLabel(/^Files/)
    .setInputFiles([{ name: 'shop.csv', mimeType: 'text/csv', buffer: Buffer.from(table) }]);
  for (const [name, column] of [
    ['Id column', 'sku'],
    ['Text column', 'description'],
    ['Title column', 'label'],
  ] as const)
    await page.getByRole('combobox', { name }).selectOption(column);
  await picture(page, 'upload', look);
  await page.getByText('Add documents').click();
  await page.getByRole('button', { name: 'Add a condition' }).click();
  await page.getByRole('combobox', { name: /^Field/ }).selectOption('title');
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
  await page.getByRole('img', { name: 'Searches' }).waitFor();
  await picture(page, 'usage', look);
}

async function picturesOfOperators(page: Page, look: string): Promise<void> {
  await signIn(page, `${adminUrl}/admin/console`, 'Operator key', adminKey!);
  await page.getByRole('link', { name: 'default' }).waitFor();
  await picture(page, 'tenants', look);
  await page.getByRole('link', { name: 'default' }).click();
  await page.getByRole('table', { name: 'Keys' }).waitFor();
  await page.getByRole('img', { name: 'Requests' }).waitFor();
  await picture(page, 'tenant', look);
  await page.getByRole('link', { name: 'Audit' }).click();
  await page.getByRole('table', { name: 'Audit' }).waitFor();
  await picture(page, 'audit', look);
}

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

function scrolledTo(place: Locator): Promise<void> {
  return place.evaluate((element) => element.scrollIntoView());
}

async function picture(page: Page, view: string, look: string): Promise<void> {
  const file = path.join(folder, `${view}-${look}.png`);
  await page.screenshot({ path: file });
  pictures.push(file);
}
