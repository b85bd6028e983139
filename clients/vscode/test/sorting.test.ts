import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sessionFacts, SessionList } from '../src/core/sessions.js';
import {
  candidates,
  choose,
  family,
  rowOfSession,
  setTags,
  toggleMark,
} from '../src/core/sorting.js';
import { lookOf } from '../src/core/look.js';
import { tour, treeOf, until, window } from './fixture.js';

test('a session is tagged, pinned and put away, and the list says so', async (t) => {
  const at = await window(t);
  const session = await tour(at);
  const list = new SessionList(at);
  t.after(() => list.dispose());
  const row = () => rowOfSession(at, session.id);
  assert.equal(await setTags(session, [], 'build, #UI'), 'Tags: #build #ui');
  assert.equal(await setTags(session, ['build', 'ui'], 'ui'), 'Tags: #ui');
  assert.equal(await setTags(session, ['ui'], '#ui'), 'The tags are as they were.');
  assert.equal(await toggleMark(at, await row(), 'pinned'), 'The session is pinned.');
  assert.match(sessionFacts(await row()), / · #ui · pinned$/);
  assert.equal(await toggleMark(at, await row(), 'pinned'), 'The session is not pinned.');
  const archived = await toggleMark(at, await row(), 'archived');
  assert.equal(archived, 'The session is archived; the list leaves it out.');
  assert.deepEqual(await list.rows({ except: [] }), []);
  await list.showArchived(true);
  assert.equal((await list.rows({ except: [] })).length, 1);
  assert.match(sessionFacts(await row()), / · archived$/);
  assert.equal(await toggleMark(at, await row(), 'archived'), 'The session is listed again.');
});

test('a family names the entry from which a session comes', async (t) => {
  const at = await window(t);
  const session = await tour(at);
  await session.call('fork_session', { entryId: 'a1', newSessionId: 'fork', name: 'the fork' });
  const shown = await family(at, 'fork');
  const texts = shown.map(({ row, place, isOwn, entryId }) => [row.name, place, isOwn, entryId]);
  assert.deepEqual(texts, [
    ['A tour', '', false, 'a1'],
    ['the fork', '\u2003fork · ', true, undefined],
  ]);
});

test('a row says that sessions come from it, and the name of its branch', async (t) => {
  const at = await window(t);
  const session = await tour(at);
  await session.call('fork_session', { entryId: 'a1', newSessionId: 'fork', name: 'the fork' });
  await session.call('name_branch', { entryId: 'u1', name: 'the whole' });
  const tree = treeOf(session);
  let again = false;
  tree.onMore = () => (again = true);
  await tree.children();
  await until(() => again, 'the tree is read with the sessions');
  await tree.children();
  const row = tree.item('a1')?.row;
  assert.ok(row);
  assert.equal(lookOf(row).label, '↗ 1 fork · A stale cache, or a missing import.');
  const named = tree.item('u1')?.row;
  assert.ok(named);
  assert.equal(lookOf(named).label, 'the whole · Why does the build fail?');
  const shown = await family(at, session.id, row.sessions);
  assert.deepEqual(
    shown.map(({ isBorn }) => isBorn),
    [false, true],
  );
});

test('of several answers one is chosen, and the others say why', async (t) => {
  const session = await tour(await window(t));
  assert.deepEqual(await candidates(session), []);
  for (const entryId of ['c-1', 'c-2', 'c-3']) {
    const content = [{ type: 'text', text: `answer ${entryId}` }];
    const message = { role: 'assistant', content } as never;
    const more = { parentId: 'a1', keepLeaf: true, group: 'why' };
    await session.call('append_message', { entryId, message, ...more });
  }
  const found = await candidates(session);
  assert.deepEqual(
    found.map(({ outcome }) => outcome),
    ['answer c-1', 'answer c-2', 'answer c-3'],
  );
  const said = await choose(session, 'c-2', ' the shortest ');
  assert.equal(said, 'Chosen. 2 others say why.');
});
