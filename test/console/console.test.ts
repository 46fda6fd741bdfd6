/** The console in a real browser, with the real service and model: by keyboard alone, light and dark, wide and narrow. */
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import {
  accessibilityFaults,
  isTooWide,
  missingBrowser,
  startBrowser,
  type Browser,
  type Page,
} from '../support/browser.ts';
import { rounds } from '../rounds.ts';
import { makeIndex, put, useSharedStage } from '../support/running/stage.ts';

const reason = missingBrowser();
/** For people to look at. */
const pictures = path.resolve(import.meta.dirname, '../../build/console-pictures');
const looks = [
  { scheme: 'light', width: 1280 },
  { scheme: 'dark', width: 390 },
  { scheme: 'light', width: 390 },
  { scheme: 'dark', width: 1280 },
] as const;
const beeText = 'Honey bees dance to show each other where flowers are, naïvely.';

describe.skipIf(reason !== undefined)(
  `the console in a browser${reason === undefined ? '' : `: ${reason}`}`,
  () => {
    const stage = useSharedStage();
    let browser: Browser;

    beforeAll(async () => {
      mkdirSync(pictures, { recursive: true });
      browser = await startBrowser();
      const { id } = await makeIndex(stage.client, { name: 'animals' });
      await put(stage.client, id, [
        { doc_id: 'bee', text: beeText, metadata: { kind: 'insect' } },
        { doc_id: 'whale', text: 'The blue whale is the largest animal known to have existed.' },
      ]);
    });
    afterAll(() => browser.close());
    /** What the page itself complains of. */
    const problems: string[] = [];

    async function openConsole({ scheme, width }: (typeof looks)[number]): Promise<Page> {
      const context = await browser.newContext({ colorScheme: scheme, viewport: { width, height: 900 } });
      const page = await context.newPage();
      page.on('pageerror', ({ message }) => problems.push(message));
      page.on('console', (message) => {
        // The first look for a session finds none.
        if (message.type() === 'error' && !message.text().includes('401')) problems.push(message.text());
      });
      await page.goto(`${stage.server.url}/console`);
      return page;
    }

    async function signIn(page: Page): Promise<void> {
      await page.getByLabel('API key').fill(stage.tenant.key);
      await page.getByRole('button', { name: 'Sign in' }).click();
    }

    // Both widths and both schemes every time, all four together in the nightly rounds.
    test.each(looks.slice(0, rounds({ short: 2, nightly: 4 })))(
      'every view is accessible and fits ($scheme, $width)',
      async (look) => {
        const page = await openConsole(look);
        const seen = async (view: string): Promise<void> => {
          await page.screenshot({
            path: `${pictures}/${view}-${look.scheme}-${look.width}.png`,
            fullPage: true,
          });
          expect(await accessibilityFaults(page)).toEqual([]);
          expect(await isTooWide(page)).toBe(false);
        };
        await page.getByLabel('API key').waitFor();
        await seen('sign-in');
        await signIn(page);
        await page.getByRole('link', { name: 'animals' }).waitFor();
        await seen('indexes');
        await page.getByRole('link', { name: 'animals' }).click();
        await page.getByText('Token vectors').first().waitFor();
        await page.getByLabel('Query', { exact: true }).fill('how do insects communicate?');
        await page.getByRole('button', { name: 'Search' }).click();
        await page.getByText('in the service').click();
        await page.getByText('Why this score').first().click();
        await page.getByLabel(/^Text of the document/).fill(beeText);
        await page.getByRole('button', { name: 'Show' }).click();
        await page.locator('mark').first().waitFor();
        await page.getByRole('button', { name: 'insects' }).click();
        await seen('search');
        await page.getByLabel(/^Filter/).fill('{"kind":{"in":["insect"]}}');
        await page.getByLabel('by document').check();
        await page.getByLabel('exact').check();
        await page.getByRole('button', { name: 'Search' }).click();
        await page.getByText(/to use operators, send where/).waitFor();
        await page.getByLabel(/^Filter/).fill('');
        await page.getByLabel(/^Where/).fill('{"kind":{"exists":false}}');
        await page.getByRole('button', { name: 'Search' }).click();
        await page.getByText(/^\d+ results, \d+ candidates/).waitFor();
        await seen('search with conditions');
        await page.getByRole('link', { name: 'Score' }).click();
        // The view of before has a field for a query, too.
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
        await page.close();
        expect(problems.splice(0)).toEqual([]);
      },
    );

    test('everything is done by keyboard', async () => {
      const page = await openConsole(looks[0]);
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
      expect(await page.locator('mark.selected').textContent()).toBe('bees');
      await page.close();
      expect(problems.splice(0)).toEqual([]);
    });

    test('what matched is marked in the text, whatever its letters', async () => {
      const page = await openConsole(looks[0]);
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
      await page.close();
      expect(problems.splice(0)).toEqual([]);
    });

    test('a wrong key is refused with the reason, and signing out ends the session', async () => {
      const page = await openConsole(looks[0]);
      await page.getByLabel('API key').fill('qkv_live_wrong');
      await page.getByRole('button', { name: 'Sign in' }).click();
      await expect.poll(() => page.getByRole('alert').textContent()).toContain('invalid');
      await signIn(page);
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.getByLabel('API key').waitFor();
      await page.reload();
      await page.getByLabel('API key').waitFor();
      await page.close();
      expect(problems.splice(0)).toEqual([]);
    });

    test('scripts of the page can read neither key nor session', async () => {
      const page = await openConsole(looks[0]);
      await signIn(page);
      await page.getByRole('link', { name: 'animals' }).waitFor();
      const readable = await page.evaluate(
        'JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }, document.documentElement.outerHTML])',
      );
      expect(readable).not.toContain(stage.tenant.key.slice(0, 20));
      expect(readable).not.toContain('maxsimd_console');
      await page.close();
      expect(problems.splice(0)).toEqual([]);
    });
  },
);
