/** Hostile sessions in a real Chromium. Their texts must stay texts, in a file and live. */

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { hostile, payloads } from '../payloads.ts';
import { Stage, type Watched } from './harness.ts';

/** Returns all signs in the page that a text has become more than text. */
function harm(): string[] {
  const found: string[] = [];
  const note = (what: string, element: Element): void =>
    void found.push(`${what}: ${element.outerHTML.slice(0, 200)}`);
  for (const element of document.querySelectorAll('#app *, body > *')) {
    const tag = element.tagName.toLowerCase();
    if (/^(iframe|object|embed|base|meta|link|style|audio|video|math|template|marquee)$/.test(tag))
      note('element', element);
    if (tag === 'script' && element.closest('#app')) note('script', element);
    if (tag === 'svg' && !element.matches('svg.icon')) note('svg', element);
    if (
      tag === 'img' &&
      !/^data:image\/(png|jpeg|gif|webp);base64,/.test(element.getAttribute('src') ?? '')
    )
      note('picture', element);
    for (const attribute of element.attributes)
      if (attribute.name.startsWith('on')) note(attribute.name, element);
    const href = element.getAttribute('href');
    if (href !== null && !/^(https?:\/\/|mailto:|#[es]=)/i.test(href)) note('link', element);
    if (
      tag === 'a' &&
      element.closest('.prose') &&
      !(element.getAttribute('rel') ?? '').includes('noopener')
    )
      note('rel', element);
  }
  const plain = {} as Record<string, unknown>;
  if ('harmed' in plain || 'harmed' in window) found.push('a payload has run');
  if (Object.keys(Object.prototype).length > 0) found.push('the prototype was changed');
  return found;
}

async function watch(watched: Watched): Promise<void> {
  await watched.context.addInitScript(() => {
    addEventListener('securitypolicyviolation', (event) => {
      console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
    });
  });
}

/**
 * Scrolls up through the whole path, opens everything in the entries, and collects all signs of harm. In each part it presses
 * one button that copies and one link: these show no text of the entry, and each press draws the whole page again.
 */
async function walk(page: Page): Promise<string[]> {
  await page.locator('#path').dispatchEvent('wheel');
  await page.evaluate(`window.harm = ${harm.toString()}`);
  return page.evaluate(async () => {
    const found: string[] = [];
    const look = (window as unknown as { harm: () => string[] }).harm;
    const offers = '#path details:not([open]) > summary, #path .picture, #path .more';
    const once = ['#path [aria-label^=Copy]', '#path a[aria-label]'];
    const path = document.querySelector('#path');
    if (!path) return ['no path'];
    // This is far more steps than the path needs, however slow the machine is.
    const most = 5000;
    for (let still = 0, step = 0; still < 4; step += 1) {
      if (step > most) return [...found, `not at the top yet: ${path.scrollTop}`];
      for (const offer of document.querySelectorAll<HTMLElement>(offers)) offer.click();
      for (const offer of once) document.querySelector<HTMLElement>(offer)?.click();
      await new Promise((done) => setTimeout(done, 20));
      found.push(...look());
      const before = path.scrollTop;
      path.scrollTop -= path.clientHeight * 2.2;
      await new Promise((done) => setTimeout(done, 10));
      still = path.scrollTop < before ? 0 : still + 1;
    }
    return found;
  });
}

async function useEverything(page: Page): Promise<string[]> {
  const found: string[] = [];
  const look = async (): Promise<void> => void found.push(...(await page.evaluate(harm)));
  await page.locator('#tree').focus();
  for (const key of ['5', 'End', 'M', 'Home', 'PageDown', 'M', 'C']) {
    await page.keyboard.press(key);
    await page.waitForTimeout(60);
  }
  await page.locator('#compare').waitFor();
  await page.waitForTimeout(300);
  await look();
  await page.keyboard.press('Escape');
  await page.keyboard.press('t');
  await page.locator('.branches tbody').waitFor();
  await look();
  await page.keyboard.press('Escape');
  for (const words of ['<script', '__proto__', '"><img', '/(/', 'javascript:']) {
    await page.locator('#search').fill(words);
    await page.waitForTimeout(120);
    await look();
  }
  await page.locator('#search').fill('');
  return found;
}

describe('hostile sessions', { concurrency: 2 }, () => {
  let stage: Stage;
  const all = payloads();

  before(async () => {
    stage = await Stage.open();
  });

  after(async () => {
    await stage.close();
  });

  function check(watched: Watched): void {
    assert.deepEqual(watched.dialogs, []);
    assert.deepEqual(watched.foreign(), []);
    assert.deepEqual(watched.errors, []);
  }

  test('there are at least 200 payloads', () => {
    assert.ok(all.length >= 200, String(all.length));
  });

  // Each half has its own page, so that two processors are used.
  for (const half of [0, 1]) {
    test(`no text of a session does anything in a page from disk, part ${half + 1}`, async () => {
      const file = stage.export(
        hostile(
          `hostile-${half}`,
          all.filter((_, at) => at % 2 === half),
        ),
        '--no-redact',
      );
      const watched = await stage.openFile(file);
      await watch(watched);
      await watched.page.reload();
      await watched.page.waitForSelector('#tree [role=treeitem]');
      const found = [...(await useEverything(watched.page))];
      await watched.page.locator('#tree').focus();
      await watched.page.keyboard.press('End');
      await watched.page.waitForTimeout(200);
      found.push(...(await walk(watched.page)));
      assert.deepEqual(found, []);
      check(watched);
      await watched.close();
    });
  }

  test('without script the page shows texts only', async () => {
    const file = stage.export(hostile('hostile-static', all.slice(0, 60)), '--no-redact');
    const watched = await stage.openStatic(file);
    assert.ok((await watched.page.locator('#static').innerText()).length > 1000);
    assert.equal(
      await watched.page
        .locator('#static')
        .locator('script, img, svg, iframe, style, form')
        .count(),
      0,
    );
    check(watched);
    await watched.close();
  });

  test('no text of a session does anything in the live page', async () => {
    const some = all.filter((_, at) => at % 3 === 0);
    const served = await stage.serve(hostile('hostile', some));
    const watched = await served.open('&s=hostile');
    await watch(watched);
    await watched.page.reload();
    await watched.page.waitForSelector('#tree [role=treeitem]');
    const found = await useEverything(watched.page);
    await watched.page.locator('#tree').focus();
    await watched.page.keyboard.press('End');
    await watched.page.waitForTimeout(200);
    found.push(...(await walk(watched.page)));
    await watched.page.locator('#tree').focus();
    await watched.page.keyboard.press('S');
    await watched.page.locator('.session-line').first().waitFor();
    found.push(...(await watched.page.evaluate(harm)));
    assert.deepEqual(found, []);
    check(watched);
    await watched.close();
  });
});
