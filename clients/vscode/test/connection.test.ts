import assert from 'node:assert/strict';
import { appendFile } from 'node:fs/promises';
import { test } from 'node:test';
import { Session } from '../src/core/session.js';
import { SessionList, sessionTitle } from '../src/core/sessions.js';
import { connection, draw, folder, say, tour, treeOf, until, window } from './fixture.js';

test('nothing is started in a workspace that is not trusted', async (t) => {
  let starts = 0;
  const at = connection(
    t,
    {},
    {
      isTrusted: () => false,
      start: () => {
        starts += 1;
        return {};
      },
    },
  );
  await assert.rejects(at.call('list_sessions', {}), { kind: 'untrusted' });
  assert.equal(starts, 0);
  assert.equal(at.isRunning, false);
});

test('one daemon is started for calls that come together', async (t) => {
  const at = await window(t);
  let starts = 0;
  at.started.on(() => (starts += 1));
  await Promise.all([at.call('list_sessions', {}), at.call('list_trash', {})]);
  assert.equal(starts, 1);
});

test('a session goes on at the next daemon, with its place', async (t) => {
  const at = await window(t);
  const session = await tour(at);
  await session.call('set_leaf', { leafId: 'a2' });
  const tree = treeOf(session);
  const before = await draw(tree);
  const events: string[] = [];
  session.events.on(({ what }) => events.push(what));
  const { pid } = await at.client();
  process.kill(pid ?? 0, 'SIGKILL');
  await until(() => !at.isRunning || events.includes('closed'), 'the end is noticed');
  assert.deepEqual(await draw(tree), before);
  assert.equal(session.leafId, 'a2');
  assert.notEqual((await at.client()).pid, pid);
});

test('a daemon that has lived for a while is started again without a command', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: 1_000_000 });
  const at = await window(t);
  const session = await tour(at);
  let starts = 0;
  at.started.on(() => (starts += 1));
  const { pid } = await at.client();
  t.mock.timers.tick(60_000);
  process.kill(pid ?? 0, 'SIGKILL');
  // `until` cannot be used, since its clock is stopped.
  for (let n = 0; n < 6000 && starts === 0; n += 1)
    await new Promise((resolve) => setTimeout(resolve, 10));
  assert.equal(starts, 1);
  await session.client();
  assert.equal((await session.call('get_leaf', {})).leafId, session.leafId);
});

test('entries of other programs are announced, and do not move the leaf', async (t) => {
  const sessionDir = await folder(t);
  const here = connection(t, { sessionDir, summarizer: 'outline' });
  const there = connection(t, { sessionDir });
  const session = await tour(here);
  let changes = 0;
  session.events.on(({ what }) => {
    if (what === 'changed') changes += 1;
  });
  const other = await Session.open(there, { sessionId: session.id });
  await say(other, 'o1', 'user', 'From another window.');
  await until(() => changes > 0, 'the entry is announced');
  assert.equal(session.leafId, 'a3');
  assert.equal(session.othersLeafId, 'o1');
  await session.call('set_leaf', { leafId: 'o1' });
  await until(() => session.othersLeafId === undefined, 'the leaf is joined');
});

// The state entry of a stale program once made a session open on an old branch, and no text said where the newest
// turns are.
test('a session that opens beside its newest entries knows where they are', async (t) => {
  const here = await window(t);
  const before = await tour(here);
  const { sessions } = await here.call('list_sessions', {});
  const path = sessions.find(({ sessionId }) => sessionId === before.id)?.path ?? '';
  await before.close();
  const state = { type: 'custom', customType: 'todo.state', id: 's1', parentId: 'a1' };
  const line = { ...state, timestamp: '2026-11-22T08:16:21.582Z', data: {} };
  await appendFile(path, `${JSON.stringify(line)}\n`);
  const session = await Session.open(here, { sessionId: before.id });
  let damage = 0;
  session.events.on(({ what }) => (damage += what === 'damaged' ? 1 : 0));
  assert.equal(session.leafId, 's1');
  assert.equal(session.othersLeafId, 'a3');
  assert.ok((session.newerTurns ?? 0) > 0);
  await session.call('set_leaf', { leafId: 'a3' });
  await until(() => session.newerTurns === undefined, 'the newest entries are joined');
  assert.equal(session.othersLeafId, undefined);
  assert.equal(damage, 0);
});

test('a new name and a move of another view are followed', async (t) => {
  const session = await tour(await window(t));
  await session.call('set_session_name', { name: 'Another name' });
  await until(() => session.title === 'Another name', 'the name has changed');
  await session.call('set_leaf', { leafId: 'u1' });
  await until(() => session.leafId === 'u1', 'the leaf has moved');
});

test('the list of sessions is that of directories, and changes without a question', async (t) => {
  const sessionDir = await folder(t);
  const here = connection(t, { sessionDir, summarizer: 'outline' });
  const list = new SessionList(here);
  t.after(() => list.dispose());
  let changes = 0;
  list.changed.on(() => (changes += 1));
  assert.deepEqual(await list.rows({ cwd: '/tmp' }), []);
  await until(() => changes === 1, 'the start is announced');
  const there = connection(t, { sessionDir, summarizer: 'outline' });
  await tour(there, '/tmp');
  await Session.create(there, { name: 'Elsewhere', cwd: '/' });
  await until(async () => (await list.rows({ cwd: '/tmp' })).length === 1, 'the session is listed');
  assert.deepEqual((await list.rows({ except: ['/tmp'] })).map(sessionTitle), ['Elsewhere']);
  await until(() => changes > 1, 'the change is announced');
  list.query = 'tour';
  assert.deepEqual((await list.rows({ except: [] })).map(sessionTitle), ['A tour']);
});
