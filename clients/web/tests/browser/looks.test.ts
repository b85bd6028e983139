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

describe('looks', () => {
  let stage: Stage;

  before(async () => {
    stage = await Stage.open();
  });

  after(async () => {
    await stage.close();
  });

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
