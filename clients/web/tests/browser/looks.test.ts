/** What a reader changes about the look: open and closed parts, the width of the tree, and which sessions are listed. */

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
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

describe('looks', () => {
  let stage: Stage;

  before(async () => {
    stage = await Stage.open();
  });

  after(async () => {
    await stage.close();
  });

  test('a key opens all tool calls, and closes them', async () => {
    const watched = await stage.openFile(stage.export(tour()), { fragment: '#e=a2' });
    const { page } = watched;
    const calls = page.locator('.entry details.tool-call');
    await calls.first().waitFor();
    const open = page.locator('.entry details.tool-call[open]');
    await page.locator('#tree').focus();
    await page.keyboard.press('V');
    await open.first().waitFor();
    assert.equal(await open.count(), await calls.count());
    // One that the reader has closed is opened with all others.
    await calls.first().locator('summary').click();
    await page.locator('#tree').focus();
    await page.keyboard.press('V');
    await page.waitForFunction(
      () => document.querySelector('.entry details.tool-call[open]') === null,
    );
    await page.keyboard.press('V');
    await page.waitForFunction(
      () => document.querySelector('.entry details.tool-call:not([open])') === null,
    );
    await watched.close();
  });

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

  test('the list is filtered by project, date and tool', async () => {
    const now = new Date().toISOString();
    const served = await stage.serve(
      session('here', '/home/ada/project', now),
      session('there', '/home/ada/other', now),
      session('old', '/home/ada/other', '2020-01-01T00:00:00.000Z'),
    );
    const watched = await served.open('');
    const { page } = watched;
    const lines = page.locator('.session-line');
    const listed = async (count: number): Promise<string[]> => {
      await page.waitForFunction(
        (wanted) => document.querySelectorAll('.session-line').length === wanted,
        count,
      );
      const texts = await lines.allTextContents();
      return texts.map((line) => /Says (\w+)/.exec(line)?.[1] ?? line).sort();
    };
    const choose = (name: string, value: string) =>
      page.getByRole('combobox', { name, exact: true }).selectOption(value);
    assert.deepEqual(await listed(3), ['here', 'old', 'there']);
    await choose('Project', '/home/ada/other');
    assert.deepEqual(await listed(2), ['old', 'there']);
    await choose('Date', '7');
    assert.deepEqual(await listed(1), ['there']);
    await choose('Project', '');
    assert.deepEqual(await listed(2), ['here', 'there']);
    // None of them comes from another tool.
    await choose('Tool', 'codex');
    assert.deepEqual(await listed(0), []);
    await choose('Tool', '');
    assert.deepEqual(await listed(2), ['here', 'there']);
    await watched.close();
  });
});
