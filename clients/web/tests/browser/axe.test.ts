/** The page for a screen reader, a keyboard and a printer. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { tour } from '../sample.ts';
import { Stage, type Watched } from './harness.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

interface Axe {
  run(options: object): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }>;
}

async function violations(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    // The authors of a conversation wrote its headings, so their levels may be wrong.
    const rules = {
      'heading-order': { enabled: false },
      'page-has-heading-one': { enabled: true },
    };
    const { violations } = await (window as unknown as { axe: Axe }).axe.run({ rules });
    return violations.map(
      ({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 160)).join(' | ')}`,
    );
  });
}

for (const colorScheme of ['light', 'dark'] as const) {
  describe(`the page in ${colorScheme} colours`, () => {
    let stage: Stage;
    let file: string;
    let watched: Watched;
    let page: Page;

    before(async () => {
      stage = await Stage.open();
      file = stage.export(tour());
      watched = await stage.openFile(file, { colorScheme, reducedMotion: 'reduce' });
      page = watched.page;
      await page.locator('.entry .prose').first().waitFor();
    });

    after(async () => {
      await stage.close();
    });

    test('axe finds no violation in the tree and the text', async () => {
      assert.deepEqual(await violations(page), []);
      await page.evaluate(() => {
        location.hash = '#e=a7';
      });
      await page.locator('.tool-call summary').first().waitFor();
      await page.locator('.tool-call', { hasText: 'src/main.rs' }).locator('summary').click();
      await page.locator('.diff').waitFor();
      assert.deepEqual(await violations(page), []);
    });

    test('axe finds no violation in the other views', async () => {
      await page.locator('#tree').focus();
      await page.keyboard.press('?');
      await page.locator('dialog .keys').waitFor();
      assert.deepEqual(await violations(page), []);
      await page.keyboard.press('Escape');
      await page.keyboard.press('t');
      await page.locator('.branches tbody').waitFor();
      assert.deepEqual(await violations(page), []);
      await page.keyboard.press('Escape');
      await page.locator('#tree').focus();
      for (const key of ['A', 'M', 'End', 'M', 'C']) await page.keyboard.press(key);
      await page.locator('.side .entry').first().waitFor();
      assert.deepEqual(await violations(page), []);
      await page.keyboard.press('Escape');
    });

    test('axe finds no violation in the live page', async () => {
      const served = await stage.serve(tour());
      const live = await served.open('', { colorScheme, reducedMotion: 'reduce' });
      await live.page.locator('.session-line').first().waitFor();
      assert.deepEqual(await violations(live.page), []);
      await live.page.keyboard.press('Enter');
      await live.page.locator('.entry.selected .prose').first().waitFor();
      assert.deepEqual(await violations(live.page), []);
      await live.page.keyboard.press('I');
      await live.page.locator('#compose').waitFor();
      await live.page.keyboard.press('Escape');
      await live.page.keyboard.press('Home');
      await live.page.keyboard.press('Enter');
      await live.page.locator('dialog').waitFor();
      assert.deepEqual(await violations(live.page), []);
      await live.close();
    });
  });
}

describe('the page on paper and by keyboard', () => {
  let stage: Stage;

  before(async () => {
    stage = await Stage.open();
  });

  after(async () => {
    await stage.close();
  });

  test('the whole path is printed, without the tree and its tools', async () => {
    const watched = await stage.openFile(stage.export(tour()));
    const { page } = watched;
    await page.locator('.entry .prose').first().waitFor();
    await page.emulateMedia({ media: 'print' });
    await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
    await page.locator('.place', { hasText: 'There are two ways to go on' }).waitFor();
    assert.equal(await page.locator('.tree-pane').isVisible(), false);
    assert.equal(
      await page.locator('.place', { hasText: 'error[E0432]' }).first().isVisible(),
      true,
    );
    await watched.close();
  });

  test('tab leads from the tree to the text, and escape back', async () => {
    const watched = await stage.openFile(stage.export(tour()));
    const { page } = watched;
    await page.locator('#tree').focus();
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'path');
    await page.keyboard.press('Escape');
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'tree');
    await watched.close();
  });
});
