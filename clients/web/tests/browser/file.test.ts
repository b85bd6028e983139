/** The page in a file on the disk. */

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { large, tour } from '../sample.ts';
import { Stage, type Watched } from './harness.ts';

describe('the page from disk', () => {
  let stage: Stage;
  let file: string;
  let watched: Watched;
  let page: Page;

  before(async () => {
    stage = await Stage.open();
    file = stage.export(tour());
    watched = await stage.openFile(file);
    page = watched.page;
  });

  after(async () => {
    await stage.close();
  });

  const selected = () => page.locator('#tree .row.selected');
  const cursorText = () => selected().locator('.text').innerText();
  const press = (key: string) => page.keyboard.press(key);
  const focusTree = () => page.locator('#tree').focus();

  test('it shows the tree with the leaf selected, and the conversation up to it', async () => {
    assert.equal(await page.locator('h1').innerText(), 'Why does the build fail?');
    assert.match(await selected().innerText(), /All three tests pass/);
    assert.match(await selected().innerText(), /active/);
    assert.equal(await page.locator('#static').count(), 0);
  });

  // A reader who opened a file once saw the end of an unknown conversation.
  test('without a place in its address it is read from the beginning, and a button leads to the leaf', async () => {
    const scrolled = () => page.locator('#path').evaluate((element) => element.scrollTop);
    assert.equal(await scrolled(), 0);
    assert.equal(await page.evaluate(() => location.hash), '');
    await page.locator('#path .entry').getByText('Why does the build fail?').waitFor();
    for (const away of [false, true]) {
      if (away) await page.locator('#tree .row').first().click();
      await page.getByRole('button', { name: 'To the leaf' }).click();
      await page.locator('#path').getByText('Shall I commit it?').waitFor();
      assert.ok((await scrolled()) > 0);
      assert.match(await selected().innerText(), /active/);
    }
  });

  test('rows have guides, labels and the active path of the daemon', async () => {
    // All branches are open, as if nothing were folded.
    await focusTree();
    await press('*');
    await page.locator('#tree .row .guide.fork').first().waitFor();
    const row = page.locator('#tree .row', { hasText: 'Clear the cache.' });
    assert.equal(await row.locator('.guide.fork').count(), 1);
    assert.doesNotMatch((await row.getAttribute('class')) ?? '', /on-path/);
    assert.equal(await page.locator('#tree .row .label', { hasText: 'two ways' }).count(), 1);
    assert.match((await selected().getAttribute('class')) ?? '', /on-path/);
  });

  test('the keys of the terminal client move the cursor', async () => {
    await focusTree();
    await press('Home');
    assert.match(await cursorText(), /Why does the build fail/);
    await press('j');
    assert.match(await cursorText(), /I look at the manifest/);
    await press('k');
    await press('End');
    assert.match(await cursorText(), /A workspace would share/);
    await press('A');
    assert.match(await cursorText(), /All three tests pass/);
  });

  test('an entry is named by the address, and the address follows the cursor', async () => {
    await focusTree();
    await press('Home');
    await page.waitForFunction(() => location.hash === '#e=q1');
    await page.evaluate(() => {
      location.hash = '#e=a5';
    });
    await page.waitForFunction(() =>
      document.querySelector('.row.selected')?.textContent.includes('recent enough'),
    );
    const other = await stage.openFile(file, { fragment: '#e=a4' });
    await other.page.locator('#path', { hasText: 'the error is the same' }).waitFor();
    assert.match(await other.page.locator('.row.selected').innerText(), /not/);
    await other.close();
    await press('A');
  });

  test('a branch that was left is one row, which opens and closes', async () => {
    await focusTree();
    await press('*');
    const folded = page.locator('#tree .row', { hasText: /entr(y|ies) · Clear the cache/ });
    await folded.waitFor();
    const rows = (): Promise<number> => page.locator('#tree .row').count();
    const changed = (before: number): Promise<unknown> =>
      page.waitForFunction(
        (count) => document.querySelectorAll('#tree .row').length !== count,
        before,
      );
    const one = await rows();
    await folded.click();
    assert.match(await cursorText(), /^2 branches · /);
    await press('Space');
    await changed(one);
    const listed = await rows();
    assert.equal(await selected().getAttribute('aria-expanded'), 'false');
    await press('Space');
    await changed(listed);
    assert.equal(await selected().getAttribute('aria-expanded'), 'true');
    const open = await rows();
    await press('j');
    await press('Space');
    await changed(open);
    assert.equal(await rows(), listed);
    await press('h');
    await changed(listed);
    assert.equal(await rows(), one);
    await press('*');
    await changed(one);
    await press('A');
  });

  test('filters show their kinds of entries', async () => {
    await focusTree();
    await press('3');
    await page.waitForFunction(() => !document.querySelector('#tree .row.assistant'));
    assert.equal(await page.locator('#tree .row.user').count(), 6);
    await press('4');
    await page.waitForFunction(() => document.querySelectorAll('#tree .row').length === 2);
    await press('5');
    await page.locator('#tree .row', { hasText: 'Why does the build fail?' }).first().waitFor();
    await press('1');
    await press('A');
  });

  test('a search marks hits in the tree and in the text, and finds what rows do not show', async () => {
    await press('/');
    await page.keyboard.type('cache cause');
    await page.locator('#tree .row mark', { hasText: 'cache' }).first().waitFor();
    await press('Enter');
    await page.waitForFunction(() => (CSS.highlights.get('found')?.size ?? 0) > 0);
    // The result of a tool has this text, but its row shows only the last line.
    await press('/');
    await page.keyboard.type('undeclared crate');
    await page.locator('#tree .row', { hasText: 'cargo build' }).first().waitFor();
    await press('Escape');
    await page.waitForFunction(() => document.querySelectorAll('#tree .row').length > 10);
    await press('A');
  });

  test('n and N go from hit to hit, and only in a search', async () => {
    await focusTree();
    await press('n');
    await page.getByText('Nothing is searched. / searches.').waitFor();
    await press('x');
    await page.getByText('x has no action.').waitFor();
    assert.equal(await page.locator('#search').inputValue(), '');
    await press('/');
    await page.keyboard.type('build');
    await page.locator('#tree .row mark', { hasText: 'build' }).first().waitFor();
    // A hit that is only in the text comes after the hits in rows.
    await page.locator('#tree .row', { hasText: 'I look at the manifest' }).first().waitFor();
    await press('Enter');
    await press('g');
    const [first = '', second = ''] = await page.locator('#tree .row .text').allInnerTexts();
    await press('n');
    await selected().filter({ hasText: second }).waitFor();
    await press('N');
    await selected().filter({ hasText: first }).waitFor();
    await press('Escape');
    await press('A');
  });

  test('an invalid pattern is explained', async () => {
    await press('/');
    await page.keyboard.type('/(/');
    await page
      .getByText('no regular expression')
      .waitFor()
      .catch(() => undefined);
    await press('Escape');
    await press('A');
  });

  test('Markdown is rendered, and code is coloured when it is seen', async () => {
    await page.evaluate(() => {
      location.hash = '#e=a2';
    });
    await page.locator('.entry.selected .prose strong', { hasText: 'Clear the cache' }).waitFor();
    assert.equal(await page.locator('.entry.selected .prose table th').count(), 3);
    await page.locator('.entry.selected .code .hl-keyword', { hasText: 'use' }).first().waitFor();
    const link = page.locator('.entry.selected .prose a');
    assert.equal(await link.getAttribute('href'), 'https://doc.rust-lang.org/book/');
    assert.match((await link.getAttribute('rel')) ?? '', /noopener/);
  });

  test('tool calls are folded with their results, and an edit is a diff', async () => {
    await page.evaluate(() => {
      location.hash = '#e=a7';
    });
    const edit = page.locator('.tool-call', { hasText: 'src/main.rs' });
    await edit.waitFor();
    assert.equal(await edit.locator('.diff').count(), 0);
    await edit.locator('summary').click();
    await edit.locator('.diff .line.added', { hasText: 'use serde' }).waitFor();
    const build = page.locator('.tool-call', { hasText: 'cargo build' }).last();
    await build.locator('summary').click();
    await build.getByText('Finished').waitFor();
  });

  test('a selected result opens its call', async () => {
    await page.evaluate(() => {
      location.hash = '#e=r2';
    });
    await page.locator('.tool-call.selected').getByText('could not compile').waitFor();
  });

  test('thinking is folded, and pictures are shown', async () => {
    await page.locator('.thinking summary').first().click();
    await page.locator('.thinking .prose strong', { hasText: 'E0432' }).waitFor();
    await page.evaluate(() => {
      location.hash = '#e=q4';
    });
    const picture = page.locator('.picture img');
    await picture.waitFor();
    assert.equal(await picture.evaluate((image: HTMLImageElement) => image.naturalWidth), 32);
  });

  test('a summary shows what it replaces with one click', async () => {
    await page.evaluate(() => {
      location.hash = '#e=s1';
    });
    await page.locator('.summary-card.branch').waitFor();
    await page.getByText('Show what it replaces').click();
    await page.waitForFunction(() => location.hash === '#e=a5');
  });

  test('two branches are compared', async () => {
    await focusTree();
    await press('A');
    await press('M');
    await press('End');
    await press('M');
    await press('C');
    await page.locator('#compare').waitFor();
    assert.match(await page.locator('.compare-head').innerText(), /The build fails in/);
    assert.match(await page.locator('.side').first().innerText(), /13 entries/);
    assert.match(
      await page.locator('.side .files').first().innerText(),
      /1 file modified\s+src\/main.rs/,
    );
    assert.match(await page.locator('.side .figures').first().innerText(), /cost\s+0\.0[1-9]/);
    await page.locator('.side').last().getByText('A workspace would share').waitFor();
    await press('Escape');
    await page.locator('#path').waitFor();
  });

  test('statistics list the figures of each branch', async () => {
    await focusTree();
    await press('t');
    await page.locator('.branches tbody tr').first().waitFor();
    const branches = await page.locator('.branches tbody tr').allInnerTexts();
    // A long line of a branch once took the place of the row for the active branch.
    const active = await page.locator('.branches tbody .leaf').boundingBox();
    const cell = await page.locator('.branches tbody th').first().boundingBox();
    assert.ok(active && cell && active.x + active.width <= cell.x + cell.width);
    assert.equal(branches.length, 3);
    // Tokens and cost are sums of the branch, not of the session.
    const costs = branches.map((branch) => branch.split('\t').at(-2));
    assert.ok(
      costs.every((cost) => /^\d+\.\d\d$/.test(cost ?? '')),
      branches.join('\n'),
    );
    assert.ok(new Set(costs).size > 1, costs.join());
    // Tokens from the cache were once added to those that were sent.
    const heads = await page.locator('.branches thead th').allInnerTexts();
    assert.deepEqual(heads.slice(2, 5), ['in', 'cached', 'out']);
    const [, , sent, cached] = branches[0]?.split('\t') ?? [];
    assert.match(cached ?? '', /^\d+,000$/);
    assert.notEqual(sent, cached);
    await press('Escape');
    await page.locator('dialog').waitFor({ state: 'detached' });
  });

  test('the help lists the keys that work', async () => {
    await focusTree();
    await press('?');
    await page.locator('dialog .keys').waitFor();
    assert.equal(await page.getByText('undo the last move').count(), 0);
    await press('Escape');
  });

  test('text, code and links are copied', async () => {
    await watched.context
      .grantPermissions(['clipboard-read', 'clipboard-write'])
      .catch(() => undefined);
    await page.evaluate(() => {
      location.hash = '#e=a2';
    });
    const code = page.locator('.entry.selected .code').first();
    await code.hover();
    await code.getByRole('button', { name: 'Copy the code' }).click();
    await page.getByText('Copied.').waitFor();
    await page.locator('.entry.selected').getByRole('link', { name: 'Link to this entry' }).click();
    await page.getByText('The link is copied.').waitFor();
  });

  test('on a narrow screen the tree is a drawer', async () => {
    const narrow = await stage.openFile(file, { viewport: { width: 400, height: 700 } });
    const tree = narrow.page.locator('.tree-pane');
    assert.equal(await tree.isVisible(), false);
    await narrow.page.getByRole('button', { name: 'Tree' }).click();
    await narrow.page.locator('#tree .row', { hasText: 'Clear the cache.' }).click();
    await narrow.page.waitForFunction(() => location.hash === '#e=q2');
    await narrow.page.waitForTimeout(300);
    assert.equal(await tree.isVisible(), false);
    // Without a keyboard, buttons lead from one user message to the next.
    const click = async (name: string): Promise<string> => {
      const before = await narrow.page.evaluate(() => location.hash);
      await narrow.page.getByRole('button', { name }).click();
      await narrow.page.waitForFunction((hash) => location.hash !== hash, before);
      return narrow.page.evaluate(() => location.hash);
    };
    await click('To the leaf');
    const last = await click('User message before');
    assert.match(last, /^#e=q\d$/);
    assert.match(await click('User message before'), /^#e=q\d$/);
    assert.equal(await click('Next user message'), last);
    await narrow.close();
  });

  test('the minimap shows the whole tree, and scrolls it', async () => {
    const long = await stage.openFile(stage.export(large(3000)));
    const map = long.page.locator('.minimap');
    const painted = (): Promise<boolean> =>
      map.locator('canvas').evaluate((canvas: HTMLCanvasElement) => {
        const { width, height } = canvas;
        const pixels = canvas.getContext('2d')?.getImageData(0, 0, width, height).data ?? [];
        // The last rows are drawn too: a pixel in the last tenth has a colour.
        return pixels.slice(-pixels.length / 10).some((value) => value > 0);
      });
    while (!(await painted())) await long.page.waitForTimeout(100);
    const box = await map.boundingBox();
    assert.ok(box);
    const scrolled = (): Promise<number> =>
      long.page
        .locator('#tree')
        .evaluate((tree) => tree.scrollTop / (tree.scrollHeight - tree.clientHeight));
    await long.page.mouse.click(box.x + box.width / 2, box.y + 2);
    while ((await scrolled()) > 0.05) await long.page.waitForTimeout(50);
    await long.page.mouse.click(box.x + box.width / 2, box.y + box.height - 2);
    while ((await scrolled()) < 0.95) await long.page.waitForTimeout(50);
    await long.page.locator('#tree .row:not(.waiting)').first().waitFor();
    await long.close();
  });

  test('nothing is asked of anybody, and nothing fails', async () => {
    assert.deepEqual(watched.foreign(), []);
    assert.deepEqual(watched.errors, []);
    assert.deepEqual(watched.dialogs, []);
  });
});
