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
  // In a container there is no sandbox to be had; it loads our own pages alone.
  return chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
}

/** What a page breaks of WCAG 2.2 AA, contrast among it, as axe-core finds it. */
export async function accessibilityFaults(page: Page): Promise<readonly string[]> {
  const { violations } = await new AxeBuilder({ page }).analyze();
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
}

/** Whether a person must scroll sideways. */
export function isTooWide(page: Page): Promise<boolean> {
  return page.evaluate<boolean>(
    'document.documentElement.scrollWidth > document.documentElement.clientWidth',
  );
}
