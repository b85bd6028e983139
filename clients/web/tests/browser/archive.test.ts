/**
 * The archive of sessions and of branches as a person uses it: in the list, by commands, in two tabs, and after a
 * reload.
 */

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { SessionWriter, text } from '../sample.ts';
import { Stage, type Served, type Watched } from './harness.ts';

function trip(id: string, where: string): SessionWriter {
  const s = new SessionWriter(id);
  s.user('u1', null, `Plan a trip to ${where}.`);
  s.assistant('a1', 'u1', [text('By train?')]);
  s.user('u2', 'a1', 'By plane.');
  s.user('u3', 'a1', 'By bus.');
  s.user('u4', 'a1', 'By ship.');
  return s;
}

describe('the archive in the live page', () => {
  let stage: Stage;
  let served: Served;
  const open: Watched[] = [];

  before(async () => {
    stage = await Stage.open();
    served = await stage.serve(
      trip('rome', 'Rome'),
      trip('oslo', 'Oslo'),
      trip('bonn', 'Bonn'),
      trip('kyiv', 'Kyiv'),
    );
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

  async function openPage(fragment: string): Promise<Page> {
    const watched = await served.open(fragment);
    open.push(watched);
    return watched.page;
  }

  const line = (page: Page, where: string) =>
    page.locator('.sessions li', { hasText: `Plan a trip to ${where}.` });
  const row = (page: Page, hasText: string) => page.locator('#tree .row', { hasText });

  /** The bytes of a session file, which a mark does not change. */
  function bytesOf(id: string): string {
    const name = readdirSync(served.folder).find((each) => each.endsWith(`_${id}.jsonl`)) ?? '';
    return readFileSync(join(served.folder, name), 'utf8');
  }

  async function command(page: Page, typed: string): Promise<void> {
    await page.locator('#tree').focus();
    await page.keyboard.press(':');
    await page.locator('dialog input').fill(typed);
    await page.keyboard.press('Enter');
  }

  test('a session is put away and brought back in the list, in all tabs', async () => {
    const before = bytesOf('rome');
    const [one, two] = [await openPage(''), await openPage('')];
    for (const page of [one, two]) await line(page, 'Rome').waitFor();
    await line(one, 'Rome').hover();
    await line(one, 'Rome').getByRole('button', { name: 'Archive' }).click();
    await one.getByText('The session is archived; the list leaves it out.').waitFor();
    for (const page of [one, two]) await line(page, 'Rome').waitFor({ state: 'detached' });
    assert.equal(await line(one, 'Oslo').count(), 1, 'the others stay');

    await two.getByLabel('Archived ones too').check();
    await line(two, 'Rome').locator('.session-about', { hasText: 'archived' }).waitFor();
    assert.equal(await line(two, 'Oslo').getByText('archived').count(), 0);
    await one.reload();
    await line(one, 'Oslo').waitFor();
    assert.equal(await line(one, 'Rome').count(), 0, 'it stays away');

    await line(two, 'Rome').hover();
    await line(two, 'Rome').getByRole('button', { name: 'Bring back' }).click();
    await two.getByText('The session is in the list again.').waitFor();
    await line(two, 'Rome').getByRole('button', { name: 'Archive' }).waitFor();
    await line(one, 'Rome').waitFor();
    assert.equal(bytesOf('rome'), before);
  });

  test('the open session is put away and brought back by a command', async () => {
    const page = await openPage('&s=oslo');
    await row(page, 'By ship.').waitFor();
    await command(page, 'archive-session');
    await page.getByText('The session is archived; the list leaves it out.').waitFor();
    await row(page, 'By ship.').waitFor();
    await page.locator('#tree').focus();
    await page.keyboard.press('S');
    await line(page, 'Bonn').waitFor();
    assert.equal(await line(page, 'Oslo').count(), 0);
    await page.keyboard.press('Escape');
    await command(page, 'archive-session');
    await page.getByText('The session is in the list again.').waitFor();
    await page.locator('#tree').focus();
    await page.keyboard.press('S');
    await line(page, 'Oslo').waitFor();
  });

  test('a branch stays away over a reload, and a command brings it back', async () => {
    const page = await openPage('&s=bonn');
    await row(page, '2 branches').click();
    await command(page, 'archive');
    // The row stands for two branches, and the key needs one of them.
    await page.getByText('Several branches are here: choose one of them.').waitFor();
    // The row of both names this branch too, until each has a row.
    await row(page, '2 branches').waitFor({ state: 'detached' });
    await row(page, 'By bus.').click();
    await command(page, 'archive');
    await page.getByText('Archived. . shows it, D brings it back.').waitFor();
    await row(page, 'By bus.').waitFor({ state: 'detached' });
    await page.reload();
    await page.locator('.tree-foot', { hasText: '1 archived branch · show' }).waitFor();
    await row(page, 'By plane.').waitFor();
    assert.equal(await row(page, 'By bus.').count(), 0);

    await command(page, 'show-archived');
    // Now there are two branches again, in one line.
    await row(page, '2 branches').click();
    await page.keyboard.press('Space');
    await row(page, 'By bus.').locator('.away').waitFor();
    assert.equal(await row(page, 'By plane.').locator('.away').count(), 0);
    await row(page, 'By bus.').click();
    await command(page, 'unarchive');
    await page.getByText('The branch is back. D archives it again.').waitFor();
    await row(page, 'By bus.').locator('.away').waitFor({ state: 'detached' });
    assert.equal(await page.locator('.tree-foot button').count(), 0);
  });

  test('a branch that is put away in another tab takes the leaf of this one along', async () => {
    const [one, two] = [await openPage('&s=kyiv'), await openPage('&s=kyiv')];
    for (const page of [one, two]) await row(page, 'By ship.').locator('.leaf').waitFor();
    await row(one, 'By ship.').click();
    await command(one, 'archive');
    await one.locator('dialog').getByRole('button', { name: 'Archive it' }).click();
    await one.getByText('The leaf has moved out of it.').waitFor();
    for (const page of [one, two]) {
      await row(page, 'By train?').locator('.leaf').waitFor();
      await row(page, 'By ship.').waitFor({ state: 'detached' });
    }
    await two.locator('#tree').focus();
    await two.keyboard.press('u');
    for (const page of [one, two]) await row(page, 'By ship.').locator('.leaf').waitFor();
  });
});
