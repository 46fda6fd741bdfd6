/** The console in a real browser, with the real service and model: by keyboard alone, light and dark, wide and narrow. */
import { mkdirSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';

import { accessibilityFaults, isTooWide, missingBrowser, type Page } from '../support/browser.ts';
import { rounds } from '../rounds.ts';
import { useSharedStage } from '../support/running/stage.ts';
import { makeIndex, put } from '../support/running/requests.ts';
import { looks, pictures, useConsole, type Look } from './console-page.ts';

const reason = missingBrowser();
const [wide] = looks as readonly [Look];
const beeText = 'Bees dance to show others the way to flowers, naïvely.';
const longId = `${'a'.repeat(60)}-${'b'.repeat(60)}`;

describe.skipIf(reason !== undefined)(
  `the console in a browser${reason === undefined ? '' : `: ${reason}`}`,
  () => {
    const stage = useSharedStage();
    const { open, signIn, expectClosed } = useConsole(stage);

    beforeAll(async () => {
      mkdirSync(pictures, { recursive: true });
      const { id } = await makeIndex(stage.client, { name: 'animals' });
      await put(stage.client, id, [
        { doc_id: 'bee', text: beeText, metadata: { title: 'Bees', kind: 'insect', year: 1967 } },
        { doc_id: longId, text: 'The blue whale is the largest animal known to have existed.' },
      ]);
      await makeIndex(stage.client, { name: 'nothing' });
      // The overview has plots of it.
      await stage.client.search(id, { query: 'insects' });
    });

    test('a link by a name opens the index that has it, at the place that the link says', async () => {
      const { id } = await makeIndex(stage.client, { name: 'größe/100%' });
      const page = await open(wide);
      await signIn(page);
      for (const written of ['name:gr%C3%B6%C3%9Fe%2F100%25', encodeURIComponent('name:größe/100%')]) {
        await page.evaluate(`location.hash = '#/indexes/${written}/settings'`);
        await page.waitForURL(`**#/indexes/${id}/settings`);
        await page.getByRole('heading', { name: 'größe/100%' }).waitFor();
        await page.evaluate(`location.hash = '#/'`);
      }
      await expectClosed(page);
    });

    test.each(looks.slice(0, rounds({ short: 2, nightly: 4 })))(
      'every view is accessible and fits ($scheme, $width)',
      async (look) => {
        const page = await open(look);
        const seen = async (view: string): Promise<void> => {
          await page.screenshot({
            path: `${pictures}/${view}-${look.scheme}-${look.width}.png`,
            fullPage: true,
          });
          expect(await accessibilityFaults(page), view).toEqual([]);
          expect(await isTooWide(page), view).toBe(false);
        };
        await page.getByLabel('API key').waitFor();
        await seen('sign-in');
        await signIn(page);
        await seeOverview(page, seen);
        await seeSearch(page, seen);
        await seeIndex(page, seen);
        await page.getByRole('link', { name: 'Score' }).click();
        await page.getByLabel('Document 1').fill('Bees dance.');
        await page.getByLabel('Query').fill('insects');
        await page.getByLabel('Document 2').fill('Whales sing.');
        await page.getByRole('button', { name: 'Score', exact: true }).click();
        await page.getByText('Why this score').first().click();
        await page.locator('mark').first().waitFor();
        await seen('score');
        await page.getByRole('link', { name: 'Usage' }).click();
        await page.getByRole('meter').first().waitFor();
        await seen('usage');
        await expectClosed(page);
      },
    );

    test.each(looks.slice(0, 2))(
      'a field with the text gives passages, and "Why this score" explains them ($scheme, $width)',
      async (look) => {
        const { id, name } = await makeIndex(stage.client);
        const title = 'Bees, their dances, and the flowers that they find';
        await put(stage.client, id, [{ doc_id: 'bee', text: beeText, metadata: { title, body: beeText } }]);
        const page = await open(look);
        await signIn(page);
        await page.getByRole('link', { name }).click();
        await page.getByLabel('Query', { exact: true }).fill('which flowers do bees find?');
        await page.getByRole('button', { name: 'Search' }).click();
        const passage = page.locator('.passage');
        await passage.waitFor();
        expect(await passage.textContent()).toBe(beeText);
        // The word that matches best is darkest, and others are paler.
        expect(await passage.locator('mark.shade-5').count()).toBeGreaterThan(0);
        expect(await passage.locator('mark:not(.shade-5)').count()).toBeGreaterThan(0);
        await page.getByText('Why this score').click();
        await page.getByRole('region', { name: /^Passage/ }).waitFor();
        expect(await page.getByLabel(/^Text of the document/).count()).toBe(0);
        expect(await passage.isVisible()).toBe(false);
        expect(await accessibilityFaults(page)).toEqual([]);
        await page.getByText('Why this score').click();
        await passage.waitFor();
        await page.getByRole('link', { name: 'Documents' }).click();
        const long = page.getByRole('cell', { name: title });
        // In pixels from the left.
        const linesBegin = await long.evaluate((cell) => {
          const range = cell.ownerDocument.createRange();
          range.selectNodeContents(cell);
          return [...range.getClientRects()].map(({ left }) => left);
        });
        expect(new Set(linesBegin).size).toBe(1);
        await expectClosed(page);
      },
    );

    test('everything is done by keyboard', async () => {
      const page = await open(wide);
      const { keyboard } = page;
      /** Goes on by Tab until the element has the focus. */
      const reach = async (name: RegExp): Promise<void> => {
        for (let presses = 0; presses < 40; presses += 1) {
          await keyboard.press('Tab');
          const focused = await page.evaluate(
            "document.activeElement === document.body ? '' : (document.activeElement.labels?.[0]?.textContent ?? '') + ' ' + document.activeElement.textContent",
          );
          if (name.test(String(focused))) return;
        }
        throw new Error(`Tab does not reach ${name}`);
      };
      await page.getByLabel('API key').waitFor();
      await reach(/API key/);
      await keyboard.type(stage.tenant.key);
      await keyboard.press('Enter');
      await page.getByRole('link', { name: 'animals' }).waitFor();
      await reach(/^ *animals$/);
      await keyboard.press('Enter');
      await page.getByLabel('Query', { exact: true }).waitFor();
      await reach(/Query/);
      await keyboard.type('insects');
      await keyboard.press('Enter');
      await page.getByText('Why this score').first().waitFor();
      await reach(/Why this score/);
      await keyboard.press('Enter');
      await page.getByLabel(/^Text of the document/).waitFor();
      await reach(/Text of the document/);
      await keyboard.type(beeText);
      await reach(/Show/);
      await keyboard.press('Enter');
      await page.locator('mark').first().waitFor();
      await reach(/^ *insects/);
      await keyboard.press('Enter');
      // Tokens that share a row are marked together.
      expect(await page.locator('mark.selected').allTextContents()).toContain('Bees');
      await expectClosed(page);
    });

    test('what matched is marked in the text, whatever its letters', async () => {
      const page = await open(wide);
      await signIn(page);
      await page.getByRole('link', { name: 'Score' }).click();
      await page.getByLabel('Document 1').fill('In ZU\u0308RICH 🎈 they are naïve, 東京 is not.');
      await page.getByLabel('Query').fill('naive Zürich');
      await page.getByRole('button', { name: 'Remove the last' }).click();
      await page.getByRole('button', { name: 'Score', exact: true }).click();
      await page.getByText('Why this score').click();
      await page.locator('mark').first().waitFor();
      const marked = await page.locator('mark').allTextContents();
      expect(marked).toEqual(expect.arrayContaining(['ZU\u0308RICH', 'naïve']));
      await expectClosed(page);
    });

    test('a wrong key is refused with the reason, and signing out ends the session', async () => {
      const page = await open(wide);
      await page.getByLabel('API key').fill('qkv_live_wrong');
      await page.getByRole('button', { name: 'Sign in' }).click();
      await expect.poll(() => page.getByRole('alert').textContent()).toContain('invalid');
      await signIn(page);
      const top = async (name: string): Promise<number> =>
        (await page.getByRole('banner').getByText(name).boundingBox())?.y ?? Infinity;
      await page.setViewportSize({ width: 390, height: 900 });
      expect(Math.abs((await top('Sign out')) - (await top('Overview')))).toBeLessThan(12);
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.getByLabel('API key').waitFor();
      await page.reload();
      await page.getByLabel('API key').waitFor();
      await expectClosed(page);
    });

    test('scripts of the page can read neither key nor session', async () => {
      const page = await open(wide);
      await signIn(page);
      await page.getByRole('link', { name: 'animals' }).waitFor();
      const readable = await page.evaluate(
        'JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }, document.documentElement.outerHTML])',
      );
      expect(readable).not.toContain(stage.tenant.key.slice(0, 20));
      expect(readable).not.toContain('maxsimd_console');
      await expectClosed(page);
    });
  },
);

/** Takes a picture of a view, and checks it by the rules of accessibility. */
type Seen = (view: string) => Promise<void>;

async function seeOverview(page: Page, seen: Seen): Promise<void> {
  await page.getByRole('link', { name: 'animals' }).waitFor();
  await page.getByRole('meter').first().waitFor();
  await page.getByRole('button', { name: 'New index' }).click();
  await page.getByRole('region', { name: 'Last hour' }).waitFor();
  await seen('overview');
  await page.getByRole('link', { name: 'nothing' }).click();
  await page.getByRole('heading', { name: 'This index is empty' }).waitFor();
  await seen('empty index');
  await page.goBack();
}

async function seeSearch(page: Page, seen: Seen): Promise<void> {
  await page.getByRole('link', { name: 'animals' }).click();
  await page.getByLabel('Query', { exact: true }).fill('how do insects communicate?');
  await page.getByRole('button', { name: 'Search' }).click();
  await page.getByText('in all, by stage').click();
  await page.getByText('This search as code').click();
  await page.getByText('Choose what results show').click();
  await page.getByText('Why this score').first().click();
  await page.getByLabel(/^Text of the document/).fill(beeText);
  await page.getByRole('button', { name: 'Show' }).click();
  await page.locator('mark').first().waitFor();
  await page.getByRole('button', { name: 'insects' }).click();
  await seen('search');
  await page.getByRole('button', { name: 'Add a condition' }).click();
  await page.getByRole('combobox', { name: /^Field/ }).selectOption('year');
  await page.getByLabel('Value').fill('old');
  await page.getByRole('button', { name: 'Search' }).click();
  await page.getByText('old is no number').waitFor();
  await page.getByRole('combobox', { name: 'Condition' }).selectOption('is at least');
  await page.getByLabel('Value').fill('2000');
  await page.getByLabel('one result a document').check();
  await page.getByLabel('exact').check();
  await page.getByRole('button', { name: 'Search' }).click();
  await page.getByText(/^Nothing was found, 0 chunks scored, \d+ tokens? read$/).waitFor();
  await seen('search with conditions');
}

/** The other views of an index. */
async function seeIndex(page: Page, seen: Seen): Promise<void> {
  await page.getByRole('link', { name: 'Documents' }).click();
  await page.getByText('Add documents').click();
  await page.getByLabel(/^Or paste/).fill('{"sku":"1","body":"Owls hunt.","kind":"bird"}');
  await page.getByText('Metadata: sku, body, kind.').waitFor();
  await page.getByRole('link', { name: longId }).waitFor();
  await seen('documents');
  await page.getByRole('link', { name: 'bee', exact: true }).click();
  await page.getByRole('button', { name: 'Delete the document' }).click();
  await seen('document');
  await page.getByRole('link', { name: 'Settings' }).click();
  await page.getByRole('heading', { name: 'Delete' }).waitFor();
  await seen('settings');
  await page.getByRole('link', { name: 'Internals' }).click();
  await page.getByText('Token vectors').first().waitFor();
  await seen('internals');
}
