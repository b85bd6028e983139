/** Moves that take time, and several clients with the same session. */

import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { SessionWriter, text } from '../sample.ts';
import { Stage, type Served, type Watched } from './harness.ts';
import { Peer } from './peer.ts';

function small(id: string, cwd?: string): SessionWriter {
  const s = new SessionWriter(id, cwd);
  s.user('u1', null, 'Plan a trip to Rome.');
  s.assistant('a1', 'u1', [text('By train?')]);
  s.user('u2', 'a1', 'By plane.');
  s.assistant('a2', 'u2', [text('At noon, then.')]);
  return s;
}

/** A context of some 60,000 tokens, more than a compaction keeps. */
function long(id: string): SessionWriter {
  const s = new SessionWriter(id);
  let parent: string | null = null;
  for (let turn = 0; turn < 30; turn++) {
    parent = s.user(`u${turn}`, parent, `Question ${turn}. ${'Tell me more. '.repeat(280)}`);
    parent = s.assistant(`a${turn}`, parent, [text(`Answer ${turn}. ${'It is so. '.repeat(400)}`)]);
  }
  return s;
}

describe('moves in the live page', () => {
  let stage: Stage;
  let served: Served;
  /** The summarizer writes its second part when this file exists. */
  let gate: string;
  const open: Watched[] = [];
  let peer: Peer | undefined;

  before(async () => {
    stage = await Stage.open();
    gate = join(stage.folder, 'gate');
    const wait = `while [ ! -e '${gate}' ]; do sleep 0.05; done`;
    const command = `cat >/dev/null; printf 'Tried a plane, '; ${wait}; printf 'which left at noon.'`;
    const beside = small('beside');
    beside.add('s1', 'a1', 'custom', { customType: 'todo.state', data: {} });
    const sessions = ['stream', 'cancel', 'tabs', 'question', 'gone'].map((id) => small(id));
    sessions.push(small('elsewhere', '/'), long('compact'), beside);
    served = await stage.serveWithSummarizer(command, ...sessions);
  });

  afterEach(async () => {
    rmSync(gate, { force: true });
    await peer?.close();
    peer = undefined;
    for (const watched of open.splice(0)) {
      assert.deepEqual(watched.foreign(), []);
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

  async function leave(page: Page): Promise<void> {
    await row(page, 'Plan a trip').click();
    await page.locator('#tree').focus();
    await page.keyboard.press('Enter');
    await page.locator('dialog').getByRole('button', { name: 'Summarize' }).click();
  }

  test('a summary is shown while it is written, and the tree can be used meanwhile', async () => {
    const page = await openPage('stream');
    await leave(page);
    await page.locator('.stream', { hasText: 'Tried a plane,' }).waitFor();
    assert.doesNotMatch(await page.locator('.stream').innerText(), /noon/);
    await page.locator('#tree').focus();
    await page.keyboard.press('Home');
    await page.keyboard.press('j');
    await page.locator('#tree .row.selected', { hasText: 'By train?' }).waitFor();
    await page.locator('.stream').waitFor();
    writeFileSync(gate, '');
    await page.locator('#path').getByText('which left at noon.').waitFor();
    await page.locator('.running').waitFor({ state: 'detached' });
    assert.equal(await row(page, 'summary').count(), 1);
  });

  test('a summary that is cancelled moves nothing', async () => {
    const page = await openPage('cancel');
    await leave(page);
    await page.locator('.stream', { hasText: 'Tried a plane,' }).waitFor();
    await page.locator('.running').getByRole('button', { name: 'Cancel' }).click();
    await page.getByText('Nothing has moved').waitFor();
    await page.locator('.running').waitFor({ state: 'detached' });
    await row(page, 'At noon, then.').locator('.leaf').waitFor();
    assert.equal(await row(page, 'summary').count(), 0);
  });

  test('a session that opens beside its newest entries says so, and a key goes there', async () => {
    const page = await openPage('beside');
    await page.getByText('1 newer turn is on another branch: O goes there.').waitFor();
    await page.locator('#tree').focus();
    await page.keyboard.press('O');
    await page.locator('#tree .row.selected', { hasText: 'At noon, then.' }).waitFor();
    await page.keyboard.press('Enter');
    await page
      .locator('dialog')
      .getByRole('button', { name: 'Go there' })
      .or(page.getByRole('button', { name: 'No summary' }))
      .click();
    await page.getByText('Moved.').waitFor();
    await row(page, 'At noon, then.').locator('.leaf').waitFor();
    await page.locator('#tree').focus();
    await page.keyboard.press('O');
    await page.getByText('No newer entries are on another branch.').waitFor();
  });

  // After going back there was once no answer, and `H` did nothing.
  test('another agent goes on by a command to copy, after what is lost', async () => {
    const page = await openPage('elsewhere');
    await row(page, 'By plane.').click();
    await page.locator('#tree').focus();
    await page.keyboard.press('Enter');
    await page.locator('dialog').getByRole('button', { name: 'No summary' }).click();
    await page.getByText('Send the text, then H goes on in another agent.').waitFor();
    await row(page, 'By train?').click();
    await page.locator('#tree').focus();
    await page.keyboard.press('H');
    const dialog = page.locator('dialog');
    await dialog.getByText('2 messages, about').waitFor();
    await dialog.getByLabel('The agent that goes on').selectOption('text');
    await dialog.getByText('2 messages, about').waitFor();
    await dialog.getByText('By train?').waitFor();
    await dialog.getByRole('button', { name: 'Copy the text' }).waitFor();
    await dialog.getByLabel('The agent that goes on').selectOption('codex');
    await dialog.getByLabel('Begin with what').check();
    await dialog
      .getByText(/^treelined continue --in codex --learned -- \S*elsewhere\S* a1$/)
      .waitFor();
    await dialog.getByRole('button', { name: 'Copy the command' }).click();
    await page.getByText(/command is copied|does not let the page copy/).waitFor();
  });

  test('an agent that cannot go on says what to do', async () => {
    const page = await openPage('gone');
    // The folder of the session does not exist.
    await page.locator('#tree').focus();
    await page.keyboard.press('H');
    await page.locator('dialog').getByText('Correct what the message names').waitFor();
  });

  test('a compaction is shown with what it replaces', async () => {
    writeFileSync(gate, '');
    const page = await openPage('compact');
    await page.locator('#tree').focus();
    await page.keyboard.press('K');
    await page.locator('dialog').getByRole('button', { name: 'Compact' }).click();
    const card = page.locator('#path .summary-card.compaction');
    await card.getByText('Tried a plane, which left at noon.').first().waitFor();
    await page.locator('#tree .row.compaction.selected').waitFor();
    await card.getByRole('button', { name: 'Show what it replaces' }).click();
    await page.locator('#tree .row.selected.user, #tree .row.selected.assistant').waitFor();
  });

  test('two tabs and a script work on one session', async () => {
    const [one, two] = [await openPage('tabs'), await openPage('tabs')];
    peer = await Peer.connect(served);
    await peer.call('open_session', { sessionId: 'tabs' });
    const message = { role: 'user', content: 'By ship.' };
    await peer.call('append_message', { entryId: 'u3', message });
    for (const page of [one, two]) {
      await page.locator('#tree .row.selected', { hasText: 'By ship.' }).waitFor();
    }
    // A draft in one tab stays when another tab moves the leaf.
    await one.locator('#tree').focus();
    await one.keyboard.press('I');
    await one.locator('#compose textarea').fill('Or on foot?');
    await row(two, 'By train?').click();
    await two.locator('#tree').focus();
    await two.keyboard.press('Enter');
    await two.locator('dialog').getByRole('button', { name: 'No summary' }).click();
    await row(one, 'By train?').locator('.leaf').waitFor();
    assert.equal(await one.locator('#compose textarea').inputValue(), 'Or on foot?');
    await two.locator('#tree').focus();
    await two.keyboard.press('L');
    await two.locator('dialog input').fill('the fork');
    await two.keyboard.press('Enter');
    await row(one, 'By train?').locator('.label', { hasText: 'the fork' }).waitFor();
    await one.locator('#compose textarea').press('Enter');
    await row(two, 'Or on foot?').locator('.leaf').waitFor();
    const { entries } = await peer.call<{ entries: { id: string }[] }>('get_path');
    const ids = entries.map(({ id }) => id);
    assert.ok(ids.includes('a1') && !ids.includes('u2') && !ids.includes('u3'), ids.join());
  });

  test('a question that one tab answers leaves the other', async () => {
    const [one, two] = [await openPage('question'), await openPage('question')];
    peer = await Peer.connect(served);
    const asked = peer.call('ask_user', { kind: 'confirm', title: 'Leave the branch?' });
    for (const page of [one, two]) await page.locator('dialog').getByText('Leave').waitFor();
    await two.locator('dialog').getByRole('button', { name: 'Yes' }).click();
    assert.deepEqual(await asked, { value: true });
    await one.locator('dialog').waitFor({ state: 'detached' });
  });

  test('a summary is offered only where somebody can write it', async () => {
    const none = await stage.serveWith(['--summarizer', 'none'], small('none'));
    const { page } = await none.open('&s=none');
    await row(page, 'Plan a trip').click();
    await page.locator('#tree').focus();
    await page.keyboard.press('Enter');
    await page.locator('dialog').getByText('left behind').waitFor();
    assert.equal(await page.getByRole('button', { name: 'Summarize' }).count(), 0);
    assert.equal(await page.locator('dialog input').count(), 0);
    await page.getByRole('button', { name: 'Go there' }).click();
    await page.locator('dialog').waitFor({ state: 'detached' });
    await page.getByText('Moved.').waitFor();
    assert.equal(await page.getByRole('button', { name: 'Compact the context' }).count(), 0);
    await page.locator('#tree').focus();
    await page.keyboard.press('K');
    await page.getByText('no summarizer is configured').waitFor();
    assert.equal(await page.locator('dialog').count(), 0);
    await page.context().close();
  });
});
