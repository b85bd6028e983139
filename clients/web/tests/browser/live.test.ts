/** The page with a daemon. */

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, beforeEach, afterEach, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { SessionWriter, text, tour } from '../sample.ts';
import { Stage, type Served, type Watched } from './harness.ts';
import { Peer } from './peer.ts';

function small(id: string): SessionWriter {
  const s = new SessionWriter(id);
  s.user('u1', null, 'Plan a trip to Rome.');
  s.assistant('a1', 'u1', [text('By train?')]);
  s.user('u2', 'a1', 'By plane.');
  s.assistant('a2', 'u2', [text('At noon, then.')]);
  return s;
}

const SESSIONS = [
  'follow',
  'above',
  'go',
  'draft',
  'label',
  'ask',
  'refuse',
  'command',
  'lost',
  'reload',
];

describe('the live page', () => {
  let stage: Stage;
  let served: Served;
  let watched: Watched | undefined;
  let peer: Peer | undefined;

  before(async () => {
    stage = await Stage.open();
    served = await stage.serve(tour(), ...SESSIONS.map(small));
  });

  beforeEach(() => {
    watched = undefined;
    peer = undefined;
  });

  afterEach(async () => {
    await peer?.close();
    if (watched) {
      assert.deepEqual(watched.foreign(), []);
      assert.deepEqual(watched.dialogs, []);
      await watched.close();
    }
  });

  after(async () => {
    await stage.close();
  });

  async function open(session: string, fragment = ''): Promise<Page> {
    watched = await served.open(`&s=${session}${fragment}`);
    await watched.page.locator('#tree .row.selected').waitFor();
    return watched.page;
  }

  const row = (page: Page, hasText: string) => page.locator('#tree .row', { hasText });

  const draftOf = (page: Page) => page.locator('#compose textarea');

  async function goTo(page: Page, entry: string, button: string): Promise<void> {
    await row(page, entry).click();
    await page.locator('#tree').focus();
    await page.keyboard.press('Enter');
    await page.locator('dialog').getByRole('button', { name: button }).click();
  }

  test('the token leaves the address at once', async () => {
    const page = await open('follow');
    assert.doesNotMatch(page.url(), /t=/);
    assert.match(page.url(), /#s=follow&e=a2$/);
  });

  test('sessions are listed and searched, and a hit opens its session there', async () => {
    watched = await served.open('');
    const { page } = watched;
    await page.locator('.session-line').first().waitFor();
    assert.equal(await page.locator('.session-line').count(), SESSIONS.length + 1);
    await page.keyboard.type('recent enough');
    await page.locator('.session-line mark').first().waitFor();
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => location.hash === '#s=tour&e=a5');
    // Before the tree is drawn, keys go to the search.
    await page.locator('#tree .row.selected').waitFor();
    await page.keyboard.press('S');
    await page.locator('.sessions').waitFor();
  });

  test('statistics count all sessions, each answer once', async () => {
    const page = await open('follow');
    await page.locator('#tree').focus();
    await page.keyboard.press('t');
    const rows = page.locator('.usage tbody tr');
    await rows.first().waitFor();
    const by = page.getByLabel('All sessions by');
    assert.deepEqual(await by.locator('option').allInnerTexts(), [
      'day',
      'model',
      'tool',
      'session',
      'branch',
      'directory',
    ]);
    await by.selectOption('tool');
    await page.locator('.usage thead th', { hasText: 'tool' }).waitFor();
    await rows.nth(1).waitFor();
    // The cell of a name has a block, so its text ends with a line end.
    const cells = (row: string): string[] => row.split('\t').map((cell) => cell.trim());
    const [all, tool] = (await rows.allInnerTexts()).map(cells);
    assert.equal(all?.[0], 'all');
    assert.equal(tool?.[0], 'treelined');
    assert.deepEqual(tool.slice(1), all.slice(1));
    assert.match(all.at(-1) ?? '', /^~?\d+\.\d\d( \+ \?)?$/);
    await by.selectOption('branch');
    await page.locator('.usage tbody .leaf').first().waitFor();
    await page.keyboard.press('Escape');
    await page.locator('dialog').waitFor({ state: 'detached' });
  });

  test('it follows what others append', async () => {
    const page = await open('follow');
    peer = await Peer.connect(served);
    await peer.call('open_session', { sessionId: 'follow' });
    await peer.call('append_message', {
      entryId: 'u3',
      message: { role: 'user', content: 'A new question.' },
    });
    await page.locator('#tree .row.selected', { hasText: 'A new question.' }).waitFor();
    await page.locator('#path').getByText('A new question.').waitFor();
  });

  test('the cursor stays on its entry while another client appends above it', async () => {
    const page = await open('above');
    peer = await Peer.connect(served);
    await peer.call('open_session', { sessionId: 'above' });
    const say = (content: string) =>
      peer?.call('append_message', { message: { role: 'user', content } });
    await peer.call('navigate_tree', { targetId: 'a1' });
    await say('By boat.');
    await say('Slowly.');
    await page.locator('#tree').focus();
    await page.keyboard.press('*');
    await row(page, 'By boat.').click();
    await page.locator('#tree .row.selected', { hasText: 'By boat.' }).waitFor();
    await peer.call('navigate_tree', { targetId: 'a2' });
    await say('At one?');
    const above = row(page, 'At one?');
    await above.waitFor();
    const selected = page.locator('#tree .row.selected', { hasText: 'By boat.' });
    await selected.waitFor();
    const [upper, lower] = [await above.boundingBox(), await selected.boundingBox()];
    assert.ok(upper && lower && upper.y < lower.y);
  });

  test('the selected session stays selected while another one moves to the top', async () => {
    const titled = (id: string, title: string): SessionWriter => {
      const s = new SessionWriter(id);
      s.user('u1', null, title);
      return s;
    };
    const two = await stage.serve(titled('rome', 'To Rome.'), titled('oslo', 'To Oslo.'));
    watched = await two.open('');
    const { page } = watched;
    const lines = page.locator('.session-line');
    await lines.nth(1).waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowUp');
    const titles = page.locator('.session-title');
    const [first, second] = await titles.allInnerTexts();
    assert.ok(first !== undefined && second !== undefined);
    peer = await Peer.connect(two);
    const sessionId = second === 'To Rome.' ? 'rome' : 'oslo';
    await peer.call('open_session', { sessionId });
    await peer.call('append_message', { message: { role: 'user', content: 'At noon.' } });
    await titles.first().getByText(second).waitFor();
    await page.locator('.session-line.selected', { hasText: first }).waitFor();
    assert.equal(await page.locator('.session-line.selected').count(), 1);
    await page.keyboard.press('Enter');
    await page.locator('#tree .row', { hasText: first }).waitFor();
  });

  test('it goes elsewhere with a summary, and the text of a user message becomes the draft', async () => {
    const page = await open('go');
    await goTo(page, 'By plane.', 'Summarize');
    await row(page, 'summary').waitFor();
    await page.getByText('A summary of the branch is in its place').waitFor();
    assert.equal(await draftOf(page).inputValue(), 'By plane.');
    await draftOf(page).fill('By bicycle.');
    await page.keyboard.press('Enter');
    await page.locator('#tree .row.selected', { hasText: 'By bicycle.' }).waitFor();
    assert.equal(await draftOf(page).count(), 0);
  });

  test('a move is undone and redone', async () => {
    const page = await open('draft');
    await goTo(page, 'By train?', 'No summary');
    await page
      .locator('#tree .row.on-path.selected', { hasText: 'By train?' })
      .locator('.leaf')
      .waitFor();
    await page.keyboard.press('u');
    await row(page, 'At noon, then.').locator('.leaf').waitFor();
    await page.keyboard.press('U');
    await row(page, 'By train?').locator('.leaf').waitFor();
  });

  test('labels are set and removed', async () => {
    const page = await open('label');
    await page.locator('#tree').focus();
    await page.keyboard.press('L');
    await page.locator('dialog input').fill('done');
    await page.keyboard.press('Enter');
    await row(page, 'At noon').locator('.label', { hasText: 'done' }).waitFor();
    await page.keyboard.press('L');
    await page.locator('dialog input').fill('');
    await page.keyboard.press('Enter');
    await row(page, 'At noon').locator('.label').waitFor({ state: 'detached' });
  });

  test('questions of other clients are answered, and their messages shown', async () => {
    const page = await open('ask');
    peer = await Peer.connect(served);
    const yes = peer.call('ask_user', { kind: 'confirm', title: 'Leave the branch?' });
    await page.locator('dialog').getByRole('button', { name: 'Yes' }).click();
    assert.deepEqual(await yes, { value: true });
    const choice = peer.call('ask_user', {
      kind: 'select',
      title: 'Which?',
      options: ['one', 'two'],
    });
    await page.locator('dialog').getByRole('button', { name: 'two' }).click();
    assert.deepEqual(await choice, { value: 'two' });
    // A key pressed before the question could be read is not an answer. On a busy machine it may come too late.
    let isEarly = false;
    for (let attempt = 0; attempt < 5 && !isEarly; attempt += 1) {
      const line: Promise<unknown> = peer.call('ask_user', {
        kind: 'input',
        title: 'Name?',
        initial: 'a',
      });
      await page.locator('dialog input').fill('Ada');
      await page.keyboard.press('Enter');
      const pause = page.waitForTimeout(600).then(() => true);
      isEarly = await Promise.race([line.then(() => false), pause]);
      if (isEarly) {
        assert.equal(await page.locator('dialog input').inputValue(), 'Ada');
        await page.keyboard.press('Enter');
      }
      assert.deepEqual(await line, { value: 'Ada' });
    }
    assert(isEarly);
    const dismissed = peer.call('ask_user', { kind: 'editor', title: 'Why?' });
    await page.locator('dialog textarea').waitFor();
    await page.waitForTimeout(600);
    await page.keyboard.press('Escape');
    assert.deepEqual(await dismissed, { dismissed: true, reason: 'dismissed' });
    await peer.call('notify_user', { message: 'The build is green.', level: 'info' });
    await page.getByText('peer: The build is green.').waitFor();
  });

  test('a move of another client is refused', async () => {
    const page = await open('refuse');
    const ask = page.getByLabel('Ask me before others move');
    await ask.click();
    // When the box can be used, the page has completed its new handshake.
    await page.waitForFunction(
      () => document.querySelector<HTMLInputElement>('.ask input')?.disabled === false,
    );
    assert.equal(await ask.isChecked(), true);
    peer = await Peer.connect(served);
    await peer.call('open_session', { sessionId: 'refuse' });
    const moved = peer.call('navigate_tree', { targetId: 'u1' });
    await page.locator('dialog').getByRole('button', { name: 'Refuse' }).click();
    const result = await moved;
    assert.equal(result.cancelled, true);
    assert.equal(result.reason, 'cancelledByClient');
  });

  test('commands of other clients run', async () => {
    const page = await open('command');
    peer = await Peer.connect(served);
    await peer.call('register_command', {
      name: 'todo',
      description: 'Adds an item',
      argumentHint: 'TEXT',
    });
    await page.locator('#tree').focus();
    await page.keyboard.press(':');
    await page.locator('.commands', { hasText: 'Adds an item' }).waitFor();
    await page.keyboard.type('todo Ship it');
    await page.keyboard.press('Enter');
    const { eventId, args } = await peer.hear('command_invoked');
    assert.equal(args, 'Ship it');
    await peer.call('answer_event', {
      eventId,
      result: { output: 'Added: Ship it', prompt: 'Ship it' },
    });
    await page.locator('dialog .output', { hasText: 'Added: Ship it' }).waitFor();
    await page.keyboard.press('Escape');
    assert.equal(await draftOf(page).inputValue(), 'Ship it');
  });

  test('a compaction of a short context says that there is nothing to compact', async () => {
    const page = await open('label');
    await page.locator('#tree').focus();
    await page.keyboard.press('K');
    await page.locator('dialog').getByRole('button', { name: 'Compact' }).click();
    await page.getByText('no entries older').waitFor();
  });

  test('a reload keeps the session, the place and the draft', async () => {
    const page = await open('reload');
    await row(page, 'By train?').click();
    await page.locator('#tree').focus();
    await page.keyboard.press('I');
    await draftOf(page).fill('Not lost');
    await page.reload();
    await page.locator('#tree .row.selected', { hasText: 'By train?' }).waitFor();
    assert.equal(await draftOf(page).inputValue(), 'Not lost');
  });

  test('a lost connection says so, and comes back with place and draft', async () => {
    const page = await open('lost');
    await row(page, 'By train?').click();
    await page.locator('#tree').focus();
    await page.keyboard.press('I');
    await draftOf(page).fill('Still here');
    await served.stop();
    await page.locator('.banner', { hasText: 'connection to the daemon is lost' }).waitFor();
    await served.start();
    await page.locator('.banner').waitFor({ state: 'detached', timeout: 20_000 });
    assert.match(await page.locator('#tree .row.selected').innerText(), /By train/);
    assert.equal(await draftOf(page).inputValue(), 'Still here');
    await draftOf(page).press('Enter');
    await page.locator('#tree .row.selected', { hasText: 'Still here' }).waitFor();
  });

  /**
   * The address once changed to the session's id. By its id the daemon does not find a file outside of the session
   * directory.
   */
  test('a session opened by its file survives a reload and a restart, with its place', async () => {
    const file = join(stage.folder, 'else where & more.jsonl');
    writeFileSync(file, small('outside').jsonl());
    watched = await served.open(`&p=${encodeURIComponent(file)}`);
    const { page } = watched;
    await row(page, 'By train?').click();
    const place = `#p=${encodeURIComponent(file)}&e=a1`;
    await page.waitForFunction((place) => location.hash === place, place);
    const selected = page.locator('#tree .row.selected', { hasText: 'By train?' });
    await page.reload();
    await selected.waitFor();
    await served.stop();
    await page.locator('.banner', { hasText: 'connection to the daemon is lost' }).waitFor();
    await served.start();
    await page.locator('.banner').waitFor({ state: 'detached', timeout: 30_000 });
    await page.locator('#tree').focus();
    await page.keyboard.press('I');
    await draftOf(page).fill('Written after the restart');
    await draftOf(page).press('Enter');
    await page
      .locator('#tree .row.selected', { hasText: 'Written after the restart' })
      .waitFor({ timeout: 30_000 });
    await row(page, 'By train?').click();
    await page.waitForFunction((place) => location.hash === place, place);
    await page.reload();
    await selected.waitFor();
  });

  /** The page once also requested the first rows, and all rows around those in view. */
  test('a long session opens with the rows in view and the end of the path', async () => {
    const long = new SessionWriter('long');
    let parent: string | null = null;
    for (let at = 0; at < 1500; at++) parent = long.user(`u${at}`, parent, `Line ${at}.`);
    const file = join(stage.folder, 'long.jsonl');
    writeFileSync(file, long.jsonl());
    watched = await served.open('');
    const { page } = watched;
    const asked: string[] = [];
    page.on('websocket', (socket) =>
      socket.on('framesent', ({ payload }) => asked.push(payload.toString())),
    );
    await page.goto('about:blank');
    await page.goto(`${served.url.split('&')[0] ?? ''}&p=${encodeURIComponent(file)}`);
    await page.locator('#path').getByText('Line 1499.').waitFor();
    await page.locator('#tree .row.selected', { hasText: 'Line 1499.' }).waitFor();
    // The overview, and the sessions that come from entries, are requested only when the page has nothing else to do.
    const rows = asked.filter((text) => text.includes('"get_tree"'));
    const shown = rows.filter(
      (text) => !text.includes('"limit":1000') && !text.includes('"sessions":true'),
    );
    assert.equal(shown.length, 2, shown.join('\n'));
    assert.match(shown.join(), /"around":"u1499"/);
  });

  /** The agent has just written an answer without a mark for its end. */
  test('an answer that an import holds back is announced until it is there', async () => {
    const file = join(stage.folder, 'held.jsonl');
    const said = ['Which way?', 'By the pass.', 'And then?'];
    const records = said.map((words, at) => {
      const role = at % 2 === 0 ? 'user' : 'assistant';
      const message =
        role === 'user'
          ? { role, content: words }
          : { id: 'm', role, model: 'm', content: [text(words)], stop_reason: null };
      const parentUuid = at === 0 ? null : `r${at - 1}`;
      const timestamp = '2026-11-22T08:00:00.000Z';
      return { type: role, uuid: `r${at}`, parentUuid, sessionId: 'held', timestamp, message };
    });
    const write = (count: number) => {
      const lines = records.slice(0, count).map((record) => `${JSON.stringify(record)}\n`);
      writeFileSync(file, lines.join(''));
      const imported = served.run('import', '--json', '--from', 'claude-code', file);
      return JSON.parse(imported) as { sessions: { sessionId: string; held: number }[] };
    };
    const { sessions } = write(2);
    assert.equal(sessions[0]?.held, 1);
    const page = await open(sessions[0].sessionId);
    const held = page.locator('.bar .held');
    await held.waitFor();
    // Shortly before midnight the time is of the next day, which is then named.
    const until = /may still grow.*an import after (\d{4}-\d\d-\d\d )?\d\d?:\d\d/s;
    assert.match(await held.innerText(), until);
    assert.equal(await row(page, 'By the pass.').count(), 0);
    write(3);
    // The leaf of the daemon does not move, so the two new entries are a branch, which is folded.
    await row(page, 'And then?').waitFor();
    await held.waitFor({ state: 'detached' });
  });

  test('a page with a wrong token learns nothing and says what to do', async () => {
    const refused = await served.open('');
    await refused.close();
    const context = await stage.context();
    const page = await context.newPage();
    await page.goto(served.url.replace(/t=[0-9a-f]+.*/, `t=${'0'.repeat(64)}&s=tour`));
    await page.getByText('Run treelined web again').waitFor();
    assert.equal(await page.locator('.row').count(), 0);
    await context.close();
  });
});
