/** Makes the pictures of the README: node tools/run.js shots. */

import { mkdirSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { tour } from '../tests/sample.ts';
import { Stage } from '../tests/browser/harness.ts';
import { Peer } from '../tests/browser/peer.ts';

const FOLDER = 'screenshots';
const SIZE = { width: 1100, height: 700 };

mkdirSync(FOLDER, { recursive: true });
const stage = await Stage.open();
const file = stage.export(tour());

async function shoot(page: Page, name: string): Promise<void> {
  await page.mouse.move(0, 0);
  await page.waitForTimeout(700);
  await page.screenshot({ path: `${FOLDER}/${name}.png` });
}

async function shot(
  name: string,
  options: { dark?: boolean; width?: number; fragment?: string },
  prepare: (page: Page) => Promise<void> = async () => {},
): Promise<void> {
  const { dark = false, width = SIZE.width, fragment = '' } = options;
  const colorScheme = dark ? 'dark' : 'light';
  const viewport = { ...SIZE, width };
  const watched = await stage.openFile(file, {
    colorScheme,
    viewport,
    fragment,
    reducedMotion: 'reduce',
  });
  await watched.page.locator('.entry .body').first().waitFor();
  await prepare(watched.page);
  await shoot(watched.page, name);
  await watched.close();
}

await shot('page', { fragment: '#e=a2' });
await shot('dark', { dark: true, fragment: '#e=a7' }, async (page) => {
  await page.locator('.tool-call', { hasText: 'src/main.rs' }).locator('summary').click();
});
await shot('search', {}, async (page) => {
  await page.keyboard.press('/');
  await page.keyboard.type('import');
  await page.waitForTimeout(900);
  await page.keyboard.press('Enter');
});
await shot('compare', {}, async (page) => {
  for (const key of ['A', 'M', 'End', 'M', 'C']) await page.keyboard.press(key);
});
await shot('stats', { dark: true }, async (page) => {
  await page.keyboard.press('t');
  await page.locator('.branches tbody').waitFor();
});
await shot('narrow', { width: 420, fragment: '#e=q4' }, async (page) => {
  await page.getByRole('button', { name: 'Tree' }).click();
});
const served = await stage.serve(tour());
const live = await served.open('', { viewport: SIZE, reducedMotion: 'reduce' });
await live.page.locator('.session-line').first().waitFor();
await live.page.keyboard.type('what was tried for the cache');
await live.page.locator('.session-line mark').first().waitFor();
await shoot(live.page, 'sessions');
await live.close();
const asked = await served.open('&s=tour', {
  viewport: SIZE,
  colorScheme: 'light',
  reducedMotion: 'reduce',
});
await asked.page.locator('.entry.selected .prose').first().waitFor();
const peer = await Peer.connect(served);
const options = ['Commit it', 'Run the tests once more', 'Leave it as it is'];
void peer
  .call('ask_user', { kind: 'select', title: 'The tests pass. What next?', options })
  .catch(() => undefined);
await asked.page.locator('dialog').waitFor();
await shoot(asked.page, 'live');
await stage.close();
