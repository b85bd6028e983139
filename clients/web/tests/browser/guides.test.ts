/** The width of the guides in a tree with many branches. */

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { rounds } from '../sample.ts';
import { Stage, type Watched } from './harness.ts';

/** The widths of the pane with about 40, 80 and 200 columns of text, in pixels. */
const PANES = [280, 560, 1400];

/** The width of the minimap beside the rows, in pixels. */
const MINIMAP = 44;

describe('guides', () => {
  let stage: Stage;
  let watched: Watched;

  before(async () => {
    stage = await Stage.open();
    const options = { viewport: { width: 1900, height: 800 }, fragment: '#e=e4999' };
    watched = await stage.openFile(stage.export(rounds()), options);
  });

  after(async () => {
    await stage.close();
  });

  /** Sets the width of the pane. Returns the widths of rows, of guides, and of everything before the text. */
  async function measured(page: Page, pane: number) {
    await page.evaluate((tree) => {
      document.documentElement.style.setProperty('--tree', `${tree}px`);
    }, pane + MINIMAP);
    await page.waitForFunction(
      (width) => document.querySelector('#tree')?.clientWidth === width,
      pane,
    );
    // The rows are drawn one frame after the pane has its width.
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
    return page.locator('#tree .row.selected').evaluate((row) => {
      const [from, width] = [row.getBoundingClientRect().left, row.clientWidth];
      const guides = row.querySelector('.guides');
      const text = row.querySelector('.text')?.getBoundingClientRect().left ?? Infinity;
      const cut = guides?.querySelector('.cut')?.textContent;
      const steps = guides?.querySelectorAll('.guide:not(.cut)').length ?? 0;
      return { width, guides: guides?.clientWidth ?? 0, before: text - from, steps, cut };
    });
  }

  // The guides once took 85 of 356 pixels.
  test('a tree of 5,000 entries and 27 branches leaves the room to the text', async () => {
    const { page } = watched;
    await page.locator('#tree').focus();
    for (const pane of PANES)
      assert.equal((await measured(page, pane)).guides, 0, 'the path is flat at opening');
    await page.keyboard.press('*');
    await page.locator('#tree .row.selected .guides').waitFor();
    for (const pane of PANES) {
      const { width, guides, before, steps, cut } = await measured(page, pane);
      assert.ok(guides <= (width * 12) / 80, `${guides} of ${width} pixels`);
      assert.ok(before <= width / 4, `the text begins at ${before} of ${width} pixels`);
      assert.ok(steps > 0);
      assert.equal(Number(cut?.slice(1)) + steps, 27, 'missing steps are counted');
    }
    assert.deepEqual(watched.errors, []);
  });
});
