/** The console in a browser, signed in. A complaint of the page itself fails the test. */
import path from 'node:path';
import { beforeAll, afterAll, expect } from 'vitest';
import { startBrowser, type Browser, type Page } from '../support/browser.ts';
import type { Stage } from '../support/stages/tenant-stage.ts';
import type { SharedServer } from '../support/shared-services.ts';

/** For people to look at. */
export const pictures = path.resolve(import.meta.dirname, '../../build/console-pictures');

export interface Look {
  readonly scheme: 'light' | 'dark';
  readonly width: number;
}

/** Both widths and both schemes in the first two. */
export const looks: readonly Look[] = [
  { scheme: 'light', width: 1280 },
  { scheme: 'dark', width: 390 },
  { scheme: 'light', width: 390 },
  { scheme: 'dark', width: 1280 },
];

export function useBrowser(address: () => string) {
  let browser: Browser | undefined;
  const problems: string[] = [];
  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterAll(() => browser?.close());

  const open = async ({ scheme, width }: Look, place = address()): Promise<Page> => {
    const context = await browser!.newContext({ colorScheme: scheme, viewport: { width, height: 900 } });
    const page = await context.newPage();
    page.on('pageerror', ({ message }) => problems.push(message));
    page.on('console', (message) => {
      // The first look for a session finds none, and a refusal is shown to the person.
      if (message.type() === 'error' && !/\b4(01|03|22)\b/.test(message.text()))
        problems.push(message.text());
    });
    await page.goto(place);
    return page;
  };
  /** Closes the page, which must not have complained of anything. */
  const expectClosed = async (page: Page): Promise<void> => {
    await page.close();
    expect(problems.splice(0)).toEqual([]);
  };
  return { open, expectClosed };
}

export function useConsole(stage: Stage<SharedServer>, address = () => `${stage.server.url}/console`) {
  const signIn = async (page: Page, key = stage.tenant.key): Promise<void> => {
    await page.getByLabel('API key').fill(key);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  };
  return { ...useBrowser(address), signIn };
}
