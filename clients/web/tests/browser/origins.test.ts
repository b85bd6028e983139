/** Names of branches, sessions that come from each other or are put away, and the width of guides. */

import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { SessionWriter, text } from '../sample.ts';
import { Stage, type Served, type Watched } from './harness.ts';
import { Peer } from './peer.ts';

/** A conversation with one branch that was left. */
function forked(id: string): SessionWriter {
  const s = new SessionWriter(id);
  s.user('u1', null, 'Plan a trip to Rome.');
  s.assistant('a1', 'u1', [text('By train?')]);
  s.user('u2', 'a1', 'By plane.');
  s.assistant('a2', 'u2', [text('At noon, then.')]);
  s.user('u3', 'a1', 'By ship.');
  s.assistant('a3', 'u3', [text('It takes two days.')]);
  return s;
}

/** 5,000 entries: 27 times a branch is left, and the next one begins beside it. */
function large(): SessionWriter {
  const s = new SessionWriter('large');
  let fork: string | null = null;
  let count = 0;
  for (let round = 0; round < 28; round++) {
    let above: string | null = fork;
    for (let part = round < 27 ? 2 : 1; part > 0; part--) {
      above = fork;
      for (let left = round < 27 ? 90 : 5000 - count; left > 0; left--)
        above = s.user(`e${String(count)}`, above, `says ${String(count++)}`);
    }
    fork = above;
  }
  return s;
}

describe('rows and sessions in the live page', () => {
  let stage: Stage;
  let served: Served;
  const open: Watched[] = [];

  before(async () => {
    stage = await Stage.open();
    served = await stage.serve(forked('parent'), forked('put-away'), large());
  });

  afterEach(async () => {
    for (const watched of open.splice(0)) {
      assert.deepEqual(watched.errors, []);
      await watched.close();
    }
  });

  after(async () => {
    await stage.close();
  });

  async function openPage(session: string): Promise<Page> {
    const watched = await served.open(`&s=${session}`);
    open.push(watched);
    await watched.page.locator('#tree .row.selected').waitFor();
    return watched.page;
  }

  const row = (page: Page, hasText: string) => page.locator('#tree .row', { hasText });

  async function press(page: Page, hasText: string, key: string): Promise<void> {
    await row(page, hasText).click();
    await page.locator('#tree').focus();
    await page.keyboard.press(key);
  }

  // An open branch did not say its name, and a row not that sessions come from it.
  test('a row says the name of its branch, and the sessions that come from it', async () => {
    const peer = await Peer.connect(served);
    await peer.call('open_session', { sessionId: 'parent' });
    await peer.call('name_branch', { sessionId: 'parent', entryId: 'u2', name: 'the plane' });
    await peer.call('fork_session', { sessionId: 'parent', entryId: 'a1', name: 'the fork' });
    const page = await openPage('parent');
    await row(page, 'By train?').locator('.born', { hasText: '↗ 1 fork' }).waitFor();
    await press(page, 'the plane', ' ');
    await row(page, 'By plane.').locator('.branch-name', { hasText: 'the plane' }).waitFor();
    await press(page, 'By train?', 'Y');
    const own = page.locator('dialog button', { hasText: '↗ fork · the fork' });
    await own.waitFor();
    await page.waitForFunction(() => document.activeElement?.textContent.includes('↗'));
    await page.keyboard.press('Enter');
    await page.locator('h1', { hasText: 'the fork' }).waitFor();
    await peer.close();
  });

  test('a session is put away and brought back, by a command and in the list', async () => {
    const page = await openPage('put-away');
    await page.locator('#tree').focus();
    await page.keyboard.press(':');
    await page.locator('dialog input').fill('archive-session');
    await page.keyboard.press('Enter');
    await page.getByText('The session is archived; the list leaves it out.').waitFor();
    await page.locator('#tree').focus();
    await page.keyboard.press('s');
    const lines = page.locator('.sessions .session-line');
    await lines.first().waitFor();
    const without = await lines.count();
    await page.getByLabel('Archived ones too').check();
    const away = page.locator('.sessions li', { hasText: 'archived' });
    await away.waitFor();
    assert.equal(await lines.count(), without + 1);
    await away.hover();
    await away.getByRole('button', { name: 'Bring back' }).click();
    await page.getByText('The session is in the list again.').waitFor();
    await page.getByLabel('Archived ones too').uncheck();
    await away.waitFor({ state: 'detached' });
    assert.equal(await lines.count(), without + 1);
  });

  // Guides took 40 of 110 columns.
  test('of a tree of 5,000 entries guides take at most 12 of 80 columns', async () => {
    const page = await openPage('large');
    const widest = (): Promise<number> =>
      page.evaluate(() => {
        const tree = document.querySelector('#tree')?.clientWidth ?? 1;
        const guides = [...document.querySelectorAll('#tree .guides')];
        return Math.max(0, ...guides.map((each) => each.getBoundingClientRect().width)) / tree;
      });
    await row(page, 'says 4999').waitFor();
    await page.locator('#tree').focus();
    await page.keyboard.press('Home');
    await row(page, '90 entries').first().waitFor();
    assert.ok((await widest()) <= 12 / 80, `${String(await widest())} at opening`);
    await page.keyboard.press('*');
    await page.keyboard.press('End');
    await row(page, 'says 4999').locator('.guides').waitFor();
    assert.ok((await widest()) <= 12 / 80, `${String(await widest())} with all open`);
  });
});
