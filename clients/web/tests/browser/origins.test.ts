/** The names of branches, and the families of sessions. */

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

describe('rows and sessions in the live page', () => {
  let stage: Stage;
  let served: Served;
  const open: Watched[] = [];

  before(async () => {
    stage = await Stage.open();
    served = await stage.serve(forked('parent'));
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

  // An open branch once did not show its name, and a row did not show that sessions come from it.
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
});
