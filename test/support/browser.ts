/** Debian's Chromium without a window, driven by Playwright; installed where it is missing. */
import { AxeBuilder } from '@axe-core/playwright';
import { chromium, type Browser, type Page } from 'playwright-core';
import { installMissingTools } from '../../deploy/local/debian-packages.ts';

export type { Browser, Page };

/** Why there is no browser; `undefined` = there is one. */
export function missingBrowser(): string | undefined {
  return installMissingTools({ chromium: 'chromium' });
}

export function startBrowser(): Promise<Browser> {
  // The browser's sandbox does not work in a container. Without it only our own pages are loaded.
  return chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
}

/** The rules of WCAG 2.2 AA that a page breaks, contrast included, as axe-core finds them. */
export async function accessibilityFaults(page: Page): Promise<readonly string[]> {
  const { violations } = await new AxeBuilder({ page }).analyze();
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
}

/** Whether a person must scroll sideways to read the page. */
export function isTooWide(page: Page): Promise<boolean> {
  return page.evaluate<boolean>(
    'document.documentElement.scrollWidth > document.documentElement.clientWidth',
  );
}
