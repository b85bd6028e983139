/** What a reader changes about the look: open and closed parts, the width of the tree, and which sessions are listed. */

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { SessionWriter, text, tour } from '../sample.ts';
import { Stage } from './harness.ts';

/** A session with one message. */
function session(id: string, cwd: string, timestamp: string): SessionWriter {
  const s = new SessionWriter(id, cwd);
  s.add('u1', null, 'message', { timestamp, message: { role: 'user', content: `Says ${id}.` } });
  s.add('a1', 'u1', 'message', {
    timestamp,
    message: { role: 'assistant', content: [text('Yes.')] },
  });
  return s;
}

/** The list of sessions on a page. */
function sessionList(page: Page) {
  return {
    choose: (name: string, value: string) =>
      page.getByRole('combobox', { name, exact: true }).selectOption(value),
    /** Waits for this number of sessions, and returns the words after “Says” of each. */
    shown: async (count: number): Promise<string[]> => {
      await page.waitForFunction(
        (wanted) => document.querySelectorAll('.session-line').length === wanted,
        count,
      );
      const texts = await page.locator('.session-line').allTextContents();
      return texts.map((line) => /Says (\w+)/.exec(line)?.[1] ?? line).sort();
    },
  };
}

/** What cannot be read in a table at the right end of its region: texts that leave their cell, and cells outside. */
function unreadable(page: Page, table: string): Promise<string[]> {
  return page.locator(table).evaluate((element) => {
    const found: string[] = [];
    const region = element.closest('.scroll-x') ?? element;
    region.scrollLeft = region.scrollWidth;
    const room = region.getBoundingClientRect();
    if (room.left < 0 || room.right > window.innerWidth) found.push('the region leaves the page');
    for (const row of element.querySelectorAll('tr')) {
      const cells = [...row.cells];
      for (const cell of cells) {
        const box = cell.getBoundingClientRect();
        const range = document.createRange();
        range.selectNodeContents(cell);
        const { left, right } = range.getBoundingClientRect();
        const isCut = getComputedStyle(cell).overflowX === 'hidden';
        const name = cell.textContent;
        if (!isCut && (left < box.left - 1 || right > box.right + 1)) found.push(name);
        if (box.width < 40) found.push(`narrow: ${name}`);
      }
      const last = cells.at(-1)?.getBoundingClientRect();
      if (last && last.right > room.right + 1) found.push(`outside: ${row.textContent}`);
    }
    return found;
  });
}

describe('looks', () => {
  let stage: Stage;

  before(async () => {
    stage = await Stage.open();
  });

  after(async () => {
    await stage.close();
  });

  // The names lay over the figures, and the cost was cut at the edge of the page.
  for (const width of [400, 1280]) {
    test(`the tables of usage can be read in ${width} pixels`, async () => {
      const title = 'Find out why the names of branches lie over the figures of this table';
      const wide = new SessionWriter('wide', '/home/someone/projects/a-folder-with-a-long-name');
      wide.user('u1', null, title);
      const usage = { input: 12_345_678, output: 123_456, cacheRead: 98_765_432, cacheWrite: 0 };
      const answer = (id: string, members: object) =>
        wide.message(id, 'u1', { role: 'assistant', content: [text(title)], ...members });
      answer('a1', { provider: 'unheard-of', model: 'large', usage });
      answer('a2', {});
      const served = await stage.serve(wide);
      const watched = await served.open('&s=wide', { viewport: { width, height: 700 } });
      const { page } = watched;
      await page.locator('.entry').first().waitFor();
      await page.keyboard.press('t');
      const by = page.getByLabel('All sessions by');
      for (const kind of ['model', 'tool', 'session', 'directory', 'day', 'branch']) {
        await by.selectOption(kind);
        await page.locator('.usage thead th', { hasText: kind }).waitFor();
        assert.deepEqual(await unreadable(page, '.usage'), [], kind);
      }
      assert.deepEqual(await unreadable(page, '.branches'), []);
      // An answer without tokens had a dash for its cost, and no note.
      await page.getByText('1 answer without recorded tokens').waitFor();
      const rows = await page.locator('.usage tbody tr').allInnerTexts();
      const costs = rows.map((row) => row.split('\t').at(-1));
      assert.deepEqual(costs, ['unknown', 'unknown', 'unknown']);
      await watched.close();
    });
  }

  const calls = '.entry details.tool-call';
  const thinking = '.entry details.thinking';
  for (const [key, parts, others] of [
    ['V', calls, thinking],
    ['Z', thinking, calls],
  ] as const) {
    test(`${key} opens all parts of one kind, and closes them`, async () => {
      const watched = await stage.openFile(stage.export(tour()), { fragment: '#e=a2' });
      const { page } = watched;
      const all = page.locator(parts);
      await all.first().waitFor();
      const press = async (): Promise<void> => {
        await page.locator('#tree').focus();
        await page.keyboard.press(key);
      };
      const none = (of: string) =>
        page.waitForFunction((each) => document.querySelector(each) === null, of);
      assert.equal(await page.locator(`${parts}[open]`).count(), 0);
      assert.notEqual(await page.locator(others).count(), 0);
      await press();
      await none(`${parts}:not([open])`);
      assert.equal(await page.locator(`${others}[open]`).count(), 0, 'the other kind stays');
      // One that the reader has closed is opened with all others.
      await all.first().locator('summary').dispatchEvent('click');
      await press();
      await none(`${parts}[open]`);
      await press();
      await none(`${parts}:not([open])`);
      await watched.close();
    });
  }

  test('the divider sets the width of the tree, within the window and for the next time', async () => {
    const watched = await stage.openFile(stage.export(tour()));
    const { page } = watched;
    const drag = async (to: number): Promise<number> => {
      const box = await page.locator('.divider').boundingBox();
      assert.ok(box);
      await page.mouse.move(box.x + box.width / 2, 300);
      await page.mouse.down();
      await page.mouse.move(to, 300, { steps: 4 });
      await page.mouse.up();
      const shown = await page.locator('#tree').evaluate((tree) => tree.parentElement?.offsetWidth);
      return shown ?? 0;
    };
    const near = (found: number, wanted: number): void =>
      assert.ok(Math.abs(found - wanted) <= 2, `${found} is not ${wanted}`);
    near(await drag(520), 520);
    await page.reload();
    await page.locator('#tree .row').first().waitFor();
    near(await page.locator('#tree').evaluate((tree) => tree.parentElement?.offsetWidth ?? 0), 520);
    near(await drag(10), 220);
    near(await drag(1190), 1200 - 360);
    await watched.close();
  });

  test('the list is filtered by project and date', async () => {
    const now = new Date().toISOString();
    const served = await stage.serve(
      session('here', '/home/ada/project', now),
      session('there', '/home/ada/other', now),
      session('old', '/home/ada/other', '2020-01-01T00:00:00.000Z'),
    );
    const watched = await served.open('');
    const { shown, choose } = sessionList(watched.page);
    assert.deepEqual(await shown(3), ['here', 'old', 'there']);
    await choose('Project', '/home/ada/other');
    assert.deepEqual(await shown(2), ['old', 'there']);
    await choose('Date', '7');
    assert.deepEqual(await shown(1), ['there']);
    await choose('Project', '');
    assert.deepEqual(await shown(2), ['here', 'there']);
    await watched.close();
  });

  /** The filter by tool was once tried only with tools that had no session. */
  test('the list is filtered by tool, and grouped by it', async () => {
    const timestamp = '2026-11-22T08:00:00.000Z';
    const served = await stage.serve(session('here', '/home/ada/project', timestamp));
    const bring = (tool: string, name: string, records: object[]): void => {
      const file = join(stage.folder, name);
      writeFileSync(file, records.map((record) => `${JSON.stringify(record)}\n`).join(''));
      served.run('import', '--final', '--from', tool, file);
    };
    for (const [at, says] of ['Says one.', 'Says two.'].entries()) {
      const message = { role: 'user', content: says };
      const ids = { uuid: `${at}-u`, parentUuid: null, sessionId: `${at}` };
      bring('claude-code', `${at}.jsonl`, [
        { type: 'user', ...ids, timestamp, cwd: '/w', message },
      ]);
    }
    const id = '01a20124-4777-7de2-915b-ef7ddcee9bbf';
    const meta = { id, timestamp, cwd: '/w', originator: 'codex', cli_version: '0.169.0' };
    const content = [{ type: 'input_text', text: 'Says three.' }];
    bring('codex', `rollout-2026-11-22T08-00-00-${id}.jsonl`, [
      { timestamp, type: 'session_meta', payload: meta },
      { timestamp, type: 'response_item', payload: { type: 'message', role: 'user', content } },
      { timestamp, type: 'event_msg', payload: { type: 'user_message', message: 'Says three.' } },
    ]);
    const watched = await served.open('');
    const list = sessionList(watched.page);
    assert.deepEqual(await list.shown(4), ['here', 'one', 'three', 'two']);
    await list.choose('Tool', 'claude-code');
    assert.deepEqual(await list.shown(2), ['one', 'two']);
    await list.choose('Tool', 'codex');
    assert.deepEqual(await list.shown(1), ['three']);
    await list.choose('Tool', 'goose');
    assert.deepEqual(await list.shown(0), []);
    await list.choose('Tool', '');
    await list.choose('Groups', 'tool');
    assert.deepEqual(await list.shown(4), ['here', 'one', 'three', 'two']);
    const groups = await watched.page.locator('.sessions section h2').allTextContents();
    assert.deepEqual(groups.sort(), ['Claude Code', 'Codex', 'treelined']);
    await watched.close();
  });
});
