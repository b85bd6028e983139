import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { TreelinedError } from 'treelined';
import { compareBranches } from '../src/core/compare.js';
import { compact, exportTo, fork, importFrom, mergeBranch } from '../src/core/operations.js';
import { Session } from '../src/core/session.js';
import { chain, folder, packageDir, say, tour, until, window } from './fixture.js';

const TOKEN = `ghp_${'a1B2c3D4e5F6'.repeat(3)}`;

test('a fork before a message of the user has its text as a draft', async (t) => {
  const at = await window(t);
  const session = await tour(at);
  const made = await fork(at, session, 'u3');
  assert.notEqual(made.session.id, session.id);
  assert.equal(made.draft?.text, 'Add the import.');
  const { entries } = await made.session.call('get_path', {});
  assert.ok(!entries.some(({ id }) => id === 'u3'));
  const whole = await fork(at, session, 'a3');
  assert.equal(whole.draft, undefined);
});

test('a merged branch is a summary at the leaf, and the branch stays', async (t) => {
  const session = await tour(await window(t));
  assert.equal(await mergeBranch(session, 'a2'), undefined);
  const { entry } = await session.call('get_leaf', {});
  assert.equal(entry?.type, 'branch_summary');
  await session.call('get_entry', { entryId: 'a2' });
});

test('a compaction is the leaf, and a short conversation has none', async (t) => {
  const session = await tour(await window(t));
  await assert.rejects(
    compact(session, ''),
    (error) => error instanceof TreelinedError && error.is('nothingToCompact'),
  );
  for (const id of ['l1', 'l2', 'l3']) await say(session, id, 'user', 'word '.repeat(60_000));
  assert.equal(await compact(session, 'the words'), undefined);
  const { entry } = await session.call('get_leaf', {});
  assert.equal(entry?.type, 'compaction');
});

test('an import says what it has brought, and a second one brings nothing', async (t) => {
  const at = await window(t);
  const samples = new URL('../../tests/data/import/codex', packageDir).pathname;
  const params = { from: 'codex' as const, paths: [samples] };
  assert.match(await importFrom(at, params), /^Imported: [1-9].*sessions/);
  const { sessions } = await at.call('list_sessions', {});
  assert.ok(sessions.length > 0);
  await importFrom(at, params);
  assert.equal((await at.call('list_sessions', {})).sessions.length, sessions.length);
});

test('an export has no secrets, and says so', async (t) => {
  const session = await tour(await window(t));
  await say(session, 's1', 'user', `Use ${TOKEN}.`);
  const path = join(await folder(t), 'tour.md');
  assert.equal(
    await exportTo(session, 'markdown', path),
    'Exported, without secrets: 1 × github-token.',
  );
  const text = await readFile(path, 'utf8');
  assert.ok(text.includes('[redacted:github-token]') && !text.includes(TOKEN));
  // The dialog has already asked whether to replace the file.
  assert.equal(await exportTo(session, 'jsonl', path), 'Exported.');
  assert.ok((await readFile(path, 'utf8')).includes(TOKEN));
});

test('a comparison of long branches reads as much as it shows', async (t) => {
  const session = await Session.create(await window(t), { cwd: '/tmp' });
  await chain(session, 1000);
  await session.call('set_leaf', { leafId: 'm0' });
  await say(session, 'other', 'user', 'Another way.');
  const { left, right, title } = await compareBranches(session, 'm999', 'other', 1000);
  assert.equal(title, '999 entries ↔ 1 entry');
  assert.match(left, /message 1\n/);
  assert.match(left, /### 949 entries more\n$/);
  assert.match(right, /Another way\./);
});

test('a call whose answer is lost with the daemon fails, and is not sent again', async (t) => {
  const at = await window(t);
  const session = await Session.create(at, { cwd: '/tmp' });
  const client = await session.client();
  const { pid } = client;
  assert.ok(pid);
  // The message may be stored or not. A retry is safe only with an entry id.
  process.kill(pid, 'SIGSTOP');
  const lost = session.call('append_message', {
    message: { role: 'user', content: 'Once at most.' },
  });
  process.kill(pid, 'SIGKILL');
  await assert.rejects(
    lost,
    (error) => error instanceof TreelinedError && error.is('disconnected'),
  );
  await until(async () => (await session.client()) !== client, 'another daemon runs');
  const { entries } = await session.call('get_entries', {});
  assert.deepEqual(entries, []);
});
