/** Names and archive of branches, in two tabs. */

import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { SessionWriter, text } from '../sample.ts';
import { Stage, type Served, type Watched } from './harness.ts';

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

/** A conversation with all that a row may say. */
function alike(): SessionWriter {
  const s = forked('alike');
  s.assistant('a4', 'a3', [], { stopReason: 'error', errorMessage: 'Overloaded' });
  s.add('n1', 'a4', 'custom_message', { customType: 'x', content: 'Booked.', display: true });
  s.add('s1', 'n1', 'branch_summary', { summary: 'By car was full.', fromId: 'a1' });
  s.add('l1', 's1', 'label', { targetId: 'u2', label: 'fast' });
  s.add('m1', 'l1', 'custom', {
    customType: 'treelined.branch',
    data: { entryId: 'u2', name: 'the air' },
  });
  return s;
}

/** What the rows of a tree say, with all branches open. */
async function shown(page: Page): Promise<string[]> {
  await page.locator('#tree').focus();
  await page.keyboard.press('*');
  await page.locator('#tree .row .guide.fork').first().waitFor();
  const rows = await page.locator('#tree .row').all();
  return Promise.all(rows.map(async (each) => (await each.innerText()).replaceAll(/\s+/g, ' ')));
}

// With all branches open the pages had the active path first, and all other clients the oldest branch. Labels were before
// names, failures were a colour, and notes and summaries had words of the page only.
test('a file and the live page draw rows alike, in the order and the words of all clients', async () => {
  const stage = await Stage.open();
  try {
    const served = await stage.serve(alike());
    const pages = [await stage.openFile(stage.export(alike())), await served.open('&s=alike')];
    for (const { page, errors } of pages) {
      assert.deepEqual(await shown(page), [
        'user Plan a trip to Rome.',
        'assistant By train?',
        'user the air · fast By plane.',
        'assistant At noon, then.',
        'user By ship.',
        'assistant It takes two days.',
        'assistant ✗ Overloaded',
        'note Booked.',
        'summary By car was full. active',
      ]);
      assert.deepEqual(errors, []);
    }
  } finally {
    await stage.close();
  }
});

describe('branches in the live page', () => {
  let stage: Stage;
  let served: Served;
  const open: Watched[] = [];

  before(async () => {
    stage = await Stage.open();
    served = await stage.serve(forked('away'), forked('named'), forked('leaf'), forked('asked'));
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

  // A tab was once not notified of branches that another one archived.
  test('a branch is put away and brought back, in all tabs', async () => {
    const [one, two] = [await openPage('away'), await openPage('away')];
    await press(one, 'By plane.', 'D');
    await one.getByText('Archived. . shows it, D brings it back.').waitFor();
    for (const page of [one, two]) {
      await page.locator('.tree-foot', { hasText: '1 archived branch · show' }).waitFor();
      assert.equal(await row(page, 'By plane.').count(), 0);
    }
    await two.locator('.tree-foot button').click();
    await row(two, 'By plane.').locator('.away').waitFor();
    await press(two, 'By plane.', 'd');
    await two.getByText('The branch is back. D archives it again.').waitFor();
    await row(one, 'By plane.').waitFor();
    assert.equal(await one.locator('.tree-foot button').count(), 0);
    await press(one, 'By ship.', '.');
    await one.getByText('No branch is archived. D archives one.').waitFor();
  });

  test('a branch is named, and its former name is said', async () => {
    const page = await openPage('named');
    await press(page, 'By plane.', 'F2');
    await page.locator('dialog input').fill('the plane');
    await page.keyboard.press('Enter');
    await page.getByText('The branch is “the plane”.').waitFor();
    await press(page, 'the plane', '@');
    await page.locator('dialog input').fill('in the air');
    await page.keyboard.press('Enter');
    await page.getByText('It was “the plane”. f2 names it again.').waitFor();
    await row(page, 'in the air').waitFor();
  });

  // Side questions once had no keys.
  test('a question is asked beside the conversation, and kept once', async () => {
    const page = await openPage('asked');
    await press(page, 'It takes two days.', ',');
    await page.locator('dialog input').fill('And the weather?');
    await page.keyboard.press('Enter');
    await page.getByText('Asked beside the conversation. ; brings it in.').waitFor();
    await row(page, 'It takes two days.').locator('.leaf').waitFor();
    await press(page, 'And the weather?', ';');
    await page.getByText('Kept: its messages are at the leaf.').waitFor();
    const asked = row(page, 'And the weather?').filter({ hasNot: page.locator('.leaf') });
    await asked.click();
    await page.locator('#tree').focus();
    await page.keyboard.press(';');
    await page.getByText('It is in the conversation already.').waitFor();
  });

  test('the leaf leaves a branch only after a question', async () => {
    const page = await openPage('leaf');
    await press(page, 'It takes two days.', 'D');
    await page.locator('dialog').getByRole('button', { name: 'Cancel' }).click();
    await press(page, 'It takes two days.', 'D');
    await page.locator('dialog').getByRole('button', { name: 'Archive it' }).click();
    await page.getByText('The leaf has moved out of it.').waitFor();
    await row(page, 'By train?').locator('.leaf').waitFor();
    await page.locator('#tree').focus();
    await page.keyboard.press('u');
    await row(page, 'It takes two days.').locator('.leaf').waitFor();
  });
});
