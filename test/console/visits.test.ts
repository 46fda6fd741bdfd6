/** The page keeps two things between visits: a search, in its address, and why a session has ended. */
import { beforeAll, describe, expect, test } from 'vitest';

import { missingBrowser, type Page } from '../support/browser.ts';
import { createKey } from '../support/commands/command-line.ts';
import { connect } from '../support/running/client.ts';
import { eventually } from '../support/running/eventually.ts';
import { makeIndex, put } from '../support/running/requests.ts';
import { useSharedStage } from '../support/running/stage.ts';
import { useConsole } from './console-page.ts';

const reason = missingBrowser();
const look = { scheme: 'light', width: 1280 } as const;

describe.skipIf(reason !== undefined)(
  `visits of the console${reason === undefined ? '' : `: ${reason}`}`,
  () => {
    const stage = useSharedStage();
    const { open, signIn, expectClosed } = useConsole(stage);
    let id: string;

    beforeAll(async () => {
      ({ id } = await makeIndex(stage.client, { name: 'animals' }));
      await put(stage.client, id, [
        { doc_id: 'bee', text: 'Honey bees dance.', metadata: { kind: 'insect', size: 1 } },
        { doc_id: 'ant', text: 'Ants follow trails.', metadata: { kind: 'insect', size: 2 } },
        { doc_id: 'whale', text: 'The blue whale is large.', metadata: { kind: 'mammal', size: 30 } },
      ]);
    });

    const query = (page: Page) => page.getByLabel('Query', { exact: true });
    const found = (page: Page) => page.locator('.result h2').allTextContents();
    const parametersOf = (page: Page) => new URLSearchParams(page.url().split('?')[1]);
    const go = (page: Page, search: string) =>
      page.evaluate(`location.hash = ${JSON.stringify(`#/indexes/${id}?${search}`)}`);

    test('a search lives in the address: reload, back and share', async () => {
      const page = await open(look);
      await signIn(page);
      await page.getByRole('link', { name: 'animals' }).click();
      await query(page).fill('how large & heavy?');
      await page.getByLabel('Results', { exact: true }).fill('2');
      await page.getByRole('button', { name: 'Add a condition' }).click();
      await page.getByRole('combobox', { name: /^Field/ }).selectOption('size');
      await page.getByRole('combobox', { name: 'Condition' }).selectOption('is at least');
      await page.getByLabel('Value').fill('2');
      await page.getByLabel('exact').check();
      await page.getByRole('button', { name: 'Search', exact: true }).click();
      await expect.poll(() => found(page)).toEqual(['whale', 'ant']);
      expect(Object.fromEntries(parametersOf(page))).toEqual({
        query: 'how large & heavy?',
        top_k: '2',
        where: '{"size":{"gte":2}}',
        exact: 'true',
      });
      const shared = page.url();
      expect(shared).toContain(id);
      expect(shared).not.toContain(stage.tenant.key.slice(9));

      const expectRestored = async (there: Page): Promise<void> => {
        await expect.poll(() => found(there)).toEqual(['whale', 'ant']);
        expect(await query(there).inputValue()).toBe('how large & heavy?');
        expect(await there.getByLabel('Results', { exact: true }).inputValue()).toBe('2');
        expect(await there.getByRole('combobox', { name: /^Field/ }).inputValue()).toBe('size');
        expect(await there.getByRole('combobox', { name: 'Condition' }).inputValue()).toBe('gte');
        expect(await there.getByLabel('Value').inputValue()).toBe('2');
        expect(await there.getByLabel('exact').isChecked()).toBe(true);
      };
      await page.reload();
      await expectRestored(page);

      await page.getByRole('button', { name: 'Remove' }).click();
      await query(page).fill('bees');
      await page.getByLabel('Results', { exact: true }).fill('1');
      await page.getByRole('button', { name: 'Search', exact: true }).click();
      await expect.poll(() => found(page)).toEqual(['bee']);
      await page.goBack();
      await expectRestored(page);
      await page.goForward();
      await expect.poll(() => found(page)).toEqual(['bee']);
      await page.getByRole('link', { name: 'Documents' }).click();
      await page.getByRole('link', { name: 'whale' }).waitFor();
      await page.getByRole('navigation', { name: 'Index' }).getByRole('link', { name: 'Search' }).click();
      expect(parametersOf(page).get('query')).toBe('bees');
      await expectClosed(page);

      const other = await open(look);
      await other.goto(shared);
      await other.reload();
      await other.getByLabel('API key').fill(stage.tenant.key);
      await other.getByRole('button', { name: 'Sign in' }).click();
      await expectRestored(other);
      await expectClosed(other);
    });

    test.each([
      ['{"kind":"insect"}', ['is', 'insect'], 2],
      ['{"kind":{"not":"insect"}}', ['not', 'insect'], 1],
      ['{"size":{"exists":true}}', ['exists', undefined], 3],
    ])('a condition in the address has fields: %s', async (where, [operator, value], results) => {
      const page = await open(look);
      await signIn(page);
      await go(page, new URLSearchParams({ query: 'animals', where }).toString());
      await expect.poll(async () => (await found(page)).length).toBe(results);
      expect(await page.getByRole('combobox', { name: 'Condition' }).inputValue()).toBe(operator);
      if (value !== undefined) expect(await page.getByLabel('Value').inputValue()).toBe(value);
      await expectClosed(page);
    });

    test('a condition that fields cannot show stays JSON, and a broken one is named', async () => {
      const page = await open(look);
      await signIn(page);
      const where = '{"any_of":[{"kind":"mammal"},{"size":1}]}';
      await go(page, new URLSearchParams({ query: 'animals', where }).toString());
      await expect.poll(async () => (await found(page)).toSorted()).toEqual(['bee', 'whale']);
      expect(await page.getByLabel('Where (JSON)').inputValue()).toBe(where);
      await go(page, new URLSearchParams({ query: 'animals', where: '{"kind":' }).toString());
      await expect
        .poll(() => page.getByRole('alert').allTextContents())
        .toContainEqual(expect.stringContaining('the condition'));
      await expectClosed(page);
    });

    test('the page to sign in says that the key was revoked, once', async () => {
      const tenant = await stage.newTenant();
      const key = await createKey(stage.server, tenant.id, '--read-only');
      const page = await open(look);
      expect(await page.getByRole('alert').allTextContents()).not.toContainEqual(
        expect.stringContaining('session'),
      );
      await signIn(page, key.key);
      await stage.operate('key', 'revoke', key.key.slice(9, 21));
      const ended = connect(stage.server.url, key.key);
      await eventually(async () => (await ended.usage()).status === 401);
      await page.reload();
      await expect
        .poll(() => page.getByRole('alert').allTextContents())
        .toContain('the API key of this session was revoked; sign in with another key');
      await page.getByLabel('API key').fill(tenant.key);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('heading', { name: 'Overview' }).waitFor();
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.getByLabel('API key').waitFor();
      expect((await page.getByRole('alert').allTextContents()).join('')).toBe('');
      await expectClosed(page);
    });

    test('the page to sign in says that the tenant is suspended', async () => {
      const tenant = await stage.newTenant();
      await stage.operate('tenant', 'suspend', tenant.id);
      const page = await open(look);
      await page.getByLabel('API key').fill(tenant.key);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByText('the tenant is suspended').waitFor();
      await expectClosed(page);
    });
  },
);
