import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  archiveBranch,
  askAside,
  keepAside,
  nameBranch,
  unarchiveBranch,
} from '../src/core/branches.js';
import { Session } from '../src/core/session.js';
import { draw, say, shared, tour, treeOf, until, window } from './fixture.js';

test('an archived branch is gone, counted, shown again, and brought back by the button', async (t) => {
  const session = await tour(await window(t));
  const tree = treeOf(session);
  const changed = await archiveBranch(session, 'a2');
  assert.equal(changed.text, 'The branch is archived.');
  const hidden = ['u1', 'a1', 'branch_summary', 'u3', 'a3 ←', '… 1 archived branch'];
  assert.deepEqual(await draw(tree), hidden);
  const line = (await tree.children()).at(-1);
  assert.ok(line?.kind === 'more');
  line.load();
  const rows = await draw(tree);
  assert.ok(rows.includes('+ 4 entries · Clear the cache.'));
  assert.equal(rows.at(-1), '… Hide 1 archived branch');
  assert.equal(changed.undo?.title, 'Bring It Back');
  const back = await changed.undo.run();
  assert.equal(back.text, 'The branch is back.');
  assert.equal((await draw(tree)).at(-1), 'a3 ←');
  assert.equal((await back.undo?.run())?.text, 'The branch is archived.');
  assert.deepEqual(await unarchiveBranch(session, 'u3'), { text: 'The branch is not archived.' });
});

test('shed branches are counted with the way back', async (t) => {
  const session = await Session.create(await window(t), { name: 'Two ways', cwd: '/tmp' });
  await say(session, 'u1', 'user', 'Why does the build fail?');
  await say(session, 'u2', 'user', 'Clear the cache.');
  await session.call('set_leaf', { leafId: 'u1' });
  await say(session, 'u3', 'user', 'Add the import.');
  await archiveBranch(session, 'u2');
  await session.call('shed_branches', {});
  const lines = await draw(treeOf(session));
  assert.equal(lines.at(-1), '… 1 shed branch · treelined unshed brings it back');
});

test('the leaf leaves a branch that is archived, and a guard can hold it there', async (t) => {
  let holds = false;
  const { at, program } = await shared(t, {
    answers: {
      session_before_tree: () => (holds ? { cancel: true, reason: 'not this one' } : undefined),
    },
  });
  const session = await tour(at);
  // The daemon asks only programs that have the session open.
  await program.openSession({ sessionId: session.id });
  holds = true;
  assert.deepEqual(await archiveBranch(session, 'a3'), { text: 'guard cancelled: not this one' });
  assert.equal(session.leafId, 'a3');
  holds = false;
  assert.match((await archiveBranch(session, 'a3')).text, /the leaf is at its fork/);
  assert.equal(session.leafId, 'a1');
});

test('a name is given, replaced and taken away by the button', async (t) => {
  const session = await tour(await window(t));
  const first = await nameBranch(session, 'a2', 'the cache');
  assert.equal(first.text, 'The branch is called “the cache”.');
  assert.equal(first.undo?.title, 'Remove the Name');
  const second = await nameBranch(session, 'u2', 'cleared');
  assert.equal(second.text, 'The branch is called “cleared”; it was “the cache”.');
  assert.equal(
    (await second.undo?.run())?.text,
    'The branch is called “the cache”; it was “cleared”.',
  );
});

// Side questions once had no commands.
test('a question is asked beside the conversation, and kept once', async (t) => {
  const session = await tour(await window(t));
  const before = session.leafId;
  assert.match((await askAside(session, 'And the weather?')).text, /beside the conversation/);
  assert.equal(session.leafId, before);
  const { branches } = await session.call('list_branches', {});
  const asked = branches.find(({ group }) => group === 'btw');
  assert.ok(asked);
  assert.match((await keepAside(session, asked.tipId)).text, /Kept/);
  assert.match((await keepAside(session, asked.tipId)).text, /already/);
});

test('the archive of another program is announced', async (t) => {
  const { at, program } = await shared(t);
  const session = await tour(at);
  let changes = 0;
  session.events.on(({ what }) => (changes += what === 'changed' ? 1 : 0));
  await program.openSession({ sessionId: session.id });
  const before = changes;
  await program.call('archive_branch', { sessionId: session.id, entryId: 'a2' });
  await until(() => changes > before, 'the change is announced');
});
