import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Session } from '../src/core/session.js';
import { chain, draw, say, tour, treeOf, window } from './fixture.js';

test('the path to the leaf is flat, and branches are in one row where they were left', async (t) => {
  const tree = treeOf(await tour(await window(t)));
  assert.deepEqual(await draw(tree), [
    'u1',
    'a1',
    '+ 4 entries · Clear the cache.',
    '  c1',
    '  r1',
    '  a2',
    'branch_summary',
    'u3',
    'a3 ←',
  ]);
  assert.equal(tree.leafRow?.id, 'a3');
});

test('below a leaf inside of the tree everything is a branch, and several are one row', async (t) => {
  const session = await tour(await window(t));
  await session.call('set_leaf', { leafId: 'a1' });
  assert.deepEqual(await draw(treeOf(session)), [
    'u1',
    'a1 ←',
    '+ 2 branches · 7 entries · Clear the cache. · Add the import.',
    '  + 4 entries · Clear the cache.',
    '    c1',
    '    r1',
    '    a2',
    '  + 3 entries · Add the import.',
    '    u3',
    '    a3',
  ]);
});

test('at the empty position the newest beginning is shown', async (t) => {
  const session = await tour(await window(t));
  await session.call('set_leaf', { leafId: null });
  const tree = treeOf(session);
  assert.equal((await draw(tree))[0], 'u1');
  assert.equal(tree.leafRow, undefined);
  await say(session, 'second', 'user', 'Another beginning.');
  const rows = await draw(tree);
  assert.equal(rows[0], '+ 9 entries · Why does the build fail?');
  assert.equal(rows.at(-1), 'second ←');
});

test('branches of branches are folded again inside of them', async (t) => {
  const session = await tour(await window(t));
  await session.call('set_leaf', { leafId: 'c1' });
  await say(session, 'x1', 'user', 'Another way.');
  await say(session, 'x2', 'assistant', 'Yes.');
  await session.call('set_leaf', { leafId: 'a3' });
  const tree = treeOf(session);
  assert.deepEqual((await draw(tree)).slice(2, 9), [
    '+ 6 entries · Clear the cache.',
    '  c1',
    '  + 2 entries · make clean all → ✗ make: *** [all] Error 1',
    '    a2',
    '  x1',
    '  x2',
    'branch_summary',
  ]);
  const above = async (entryId: string): Promise<string[]> => {
    const ids = [];
    const item = await treeOf(session).locate(entryId);
    for (let at = item as { id: string; parent?: unknown } | undefined; at; at = at.parent as never)
      ids.push(at.id);
    return ids;
  };
  assert.deepEqual(await above('x2'), ['entry x2', 'entry u2']);
  assert.deepEqual(await above('a2'), ['entry a2', 'entry r1', 'entry u2']);
  assert.deepEqual(await above('a3'), ['entry a3']);
});

test('what another program appends below the leaf is shown, not folded', async (t) => {
  const session = await tour(await window(t));
  const tree = treeOf(session);
  // Moves of this client do not change the position where the other program continues.
  Object.defineProperty(session, 'othersLeafId', { get: () => 'x2', set: () => undefined });
  await say(session, 'x1', 'user', 'And now?');
  await say(session, 'x2', 'assistant', 'Yes.');
  await session.call('set_leaf', { leafId: 'a3' });
  assert.deepEqual((await draw(tree)).slice(-3), ['a3 ←', 'x1', 'x2']);
});

test('an entry in one of several branches is found below their row', async (t) => {
  const session = await tour(await window(t));
  await session.call('set_leaf', { leafId: 'a1' });
  const item = await treeOf(session).locate('a2');
  assert.equal(item?.row.id, 'a2');
  assert.equal(item.parent?.id, 'entry u2');
  assert.equal(item.parent.parent?.id, 'branches u2');
});

test('a long path is shown from its end, and grows by pages', async (t) => {
  const session = await Session.create(await window(t), { cwd: '/tmp' });
  await chain(session, 300);
  const tree = treeOf(session, 20);
  const lines = await draw(tree);
  assert.ok(lines.length < 30, `${lines.length} lines`);
  assert.match(lines[0] ?? '', /^… 2\d\d earlier$/);
  assert.equal(lines.at(-1), 'm299 ←');
  const [more] = await tree.children();
  assert.ok(more?.kind === 'more');
  more.load();
  assert.ok((await draw(tree)).length >= 100);
  // An entry far above is found, and the path is shown from this entry on.
  assert.equal((await tree.locate('m5'))?.row.id, 'm5');
  const far = await draw(tree);
  assert.equal(far[0], 'm0');
  assert.ok(far.includes('… 255 between') && far.length < 60, far.join());
});

test('a long branch that was left is read by pages, and an entry deep in it is found', async (t) => {
  const session = await Session.create(await window(t), { cwd: '/tmp' });
  await say(session, 'u1', 'user', 'Go.');
  await chain(session, 200);
  await session.call('set_leaf', { leafId: 'u1' });
  const lines = await draw(treeOf(session, 20));
  assert.deepEqual(lines.slice(0, 3), ['u1 ←', '+ 200 entries · message 0', '  m1']);
  assert.equal(lines.at(-1), '  … more of this branch');
  assert.equal((await treeOf(session, 20).locate('m150'))?.row.id, 'm150');
});

// VS Code draws the guides: two levels of indent, whichever branches are open.
test('a tree of 5,000 entries with 27 branches is at most two levels deep at opening', async (t) => {
  const session = await Session.create(await window(t), { cwd: '/tmp' });
  const entries: object[] = [];
  let fork: string | undefined;
  for (let round = 0; round < 29; round++) {
    let above = fork;
    for (let part = 0 < round && round < 28 ? 2 : 1; part > 0; part--) {
      above = fork;
      for (let left = round < 28 ? 90 : 5000 - entries.length; left > 0; left--) {
        const id = `e${entries.length}`;
        const message = { role: 'user', content: `says ${id}` };
        entries.push({
          type: 'message',
          id,
          message,
          ...(above !== undefined && { parentId: above }),
        });
        above = id;
      }
    }
    fork = above;
  }
  await session.call('append_entries', { entries: entries as never });
  const tree = treeOf(session, 5000);
  const top = await tree.children();
  const folded = top.filter((item) => item.kind === 'branch');
  assert.equal(folded.length, 27);
  assert.ok(top.every((item) => item.parent === undefined));
  // A branch is a flat list too, however long it is.
  const [first] = folded;
  const inside = await tree.children(first);
  assert.ok(inside.every((item) => item.kind !== 'more' && !item.hasChildren));
});

test('a query shows the rows that it finds, with the places in them', async (t) => {
  const tree = treeOf(await tour(await window(t)));
  tree.setView({ query: 'cache' });
  const found = await tree.children();
  const ids = found.map((item) => (item.kind === 'more' ? '' : item.row.id));
  assert.ok(ids.includes('a1') && ids.includes('u2') && !ids.includes('u1'), String(ids));
  const first = found[0];
  assert.ok(first && first.kind !== 'more' && first.row.match);
  tree.setView({ query: '/^Clear.*[.`]$/' });
  assert.deepEqual((await draw(tree)).slice(0, 2), ['u2', 'a2']);
  tree.setView({ query: '/(/' });
  await assert.rejects(tree.children(), { kind: 'invalidParams' });
});

test('100,000 entries are shown and searched by pages', async (t) => {
  const session = await Session.create(await window(t), { cwd: '/tmp' });
  for (let from = 0; from < 100_000; from += 10_000) await chain(session, 10_000, from);
  const tree = treeOf(session, 200);
  const start = performance.now();
  const items = await tree.children();
  const shownMs = performance.now() - start;
  assert.ok(items.length < 250);
  const item = await tree.locate('m50000');
  const locatedMs = performance.now() - start - shownMs;
  assert.equal(item?.row.id, 'm50000');
  t.diagnostic(`shown after ${shownMs.toFixed()} ms, located after ${locatedMs.toFixed()} ms`);
  // Reading every row would take several times as long, even on a busy machine.
  assert.ok(shownMs < 2000, `${shownMs} ms`);
});
