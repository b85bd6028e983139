import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { TreeNode } from 'treelined';
import { compareBranches } from '../src/core/compare.js';
import { type Draft, Drafts } from '../src/core/drafts.js';
import { move, plan, summaryChoices } from '../src/core/navigation.js';
import type { Connection } from '../src/core/connection.js';
import { Session } from '../src/core/session.js';
import { chain, connection, folder, say, shared, tour, treeOf, window } from './fixture.js';

async function rowOf(session: Session, id: string): Promise<TreeNode> {
  const item = await treeOf(session).locate(id);
  assert.ok(item);
  return item.row;
}

test('a move says before what it leaves behind', async (t) => {
  const session = await tour(await window(t));
  const to = await plan(session, await rowOf(session, 'a2'));
  assert.equal(to.leaves, 3);
  assert.match(summaryChoices(to)[0]?.detail ?? '', /The 3 entries/);
  assert.equal(summaryChoices(to).length, 3);
  assert.equal((await plan(session, await rowOf(session, 'a3'))).reason, 'alreadyThere');
});

test('a summary is offered only where somebody can write it', async (t) => {
  const at = connection(t, { sessionDir: await folder(t), summarizer: 'none' });
  const session = await Session.create(at, { cwd: '/tmp' });
  await chain(session, 4);
  const to = await plan(session, await rowOf(session, 'm0'));
  assert.equal(to.canSummarize, false);
  assert.deepEqual(
    summaryChoices(to).map(({ choice }) => choice),
    ['none'],
  );
});

test('a summary is shown while it is written, and becomes the leaf', async (t) => {
  const session = await tour(await window(t));
  const to = await plan(session, await rowOf(session, 'a2'));
  const texts: string[] = [];
  const outcome = await move(session, to, {
    choice: 'focus',
    focus: 'the cache',
    onSummary: (text) => texts.push(text),
  });
  assert.ok(outcome.isMoved && outcome.summary?.type === 'branch_summary');
  assert.equal(texts.at(-1), (outcome.summary as { summary: string }).summary);
  assert.equal(session.leafId, outcome.newLeafId);
});

test('going to a message of the user returns its text as a draft', async (t) => {
  const session = await tour(await window(t));
  const outcome = await move(session, await plan(session, await rowOf(session, 'u3')), {
    choice: 'none',
  });
  assert.equal(outcome.draft?.text, 'Add the import.');
  // The same is true at the leaf.
  await say(session, 'u4', 'user', 'More.');
  const again = await move(session, await plan(session, await rowOf(session, 'u4')), {
    choice: 'none',
  });
  assert.equal(again.draft?.text, 'More.');
});

/** A session in which another program never answers whether the leaf may move. */
async function guarded(t: TestContext): Promise<{ at: Connection; session: Session }> {
  const { at, program } = await shared(t, {
    answers: { session_before_tree: () => new Promise(() => {}) },
  });
  const session = await Session.create(at, { cwd: '/tmp' });
  await chain(session, 10);
  await program.openSession({ sessionId: session.id });
  return { at, session };
}

test('a move that is cancelled changes nothing', async (t) => {
  const { session } = await guarded(t);
  const to = await plan(session, await rowOf(session, 'm0'));
  const abort = new AbortController();
  const outcome = move(session, to, { choice: 'none', signal: abort.signal });
  setTimeout(() => abort.abort(), 100);
  const { isMoved, message } = await outcome;
  assert.equal(isMoved, false);
  assert.match(message ?? '', /aborted/);
  assert.equal(session.leafId, 'm9');
});

test('a move that waits when the connection ends fails, and the next call finds the session again', async (t) => {
  const { at, session } = await guarded(t);
  const to = await plan(session, await rowOf(session, 'm0'));
  const outcome = move(session, to, { choice: 'none' });
  const { pid } = await at.client();
  setTimeout(() => process.kill(pid ?? 0, 'SIGKILL'), 100);
  await assert.rejects(outcome, { kind: 'disconnected' });
  assert.equal((await session.call('get_leaf', {})).leafId, 'm9');
});

test('branches are compared from where they part', async (t) => {
  const session = await tour(await window(t));
  const { left, right, title } = await compareBranches(session, 'a2', 'a3');
  assert.equal(title, '4 entries ↔ 3 entries');
  assert.ok(left.startsWith('### user\n\nClear the cache.\n'));
  assert.ok(left.includes('### tool bash\n\n```\nmake: *** [all] Error 1\n```'));
  assert.ok(right.startsWith('### summary of a branch\n\n'));
  assert.ok(!left.includes('Why does the build fail?'));
});

function memory(): {
  load: () => Record<string, Draft> | undefined;
  save: (drafts: Record<string, Draft>) => void;
} {
  let text: string | undefined;
  return {
    load: () => (text === undefined ? undefined : (JSON.parse(text) as Record<string, Draft>)),
    save: (drafts) => (text = JSON.stringify(drafts)),
  };
}

test('a draft is sent at the leaf, and then forgotten', async (t) => {
  const session = await tour(await window(t));
  const kept = memory();
  const drafts = new Drafts(kept);
  drafts.begin('untitled:1', session.id);
  await assert.rejects(drafts.send('untitled:1', '  ', session), /empty/);
  const id = await drafts.send('untitled:1', 'Next.', session);
  const { entry } = await session.call('get_entry', { entryId: id });
  assert.equal((entry as { parentId: string }).parentId, 'a3');
  assert.deepEqual(kept.load(), {});
});

test('a draft outlives the daemon and the window, and is there once after a lost answer', async (t) => {
  const at = await window(t);
  const session = await tour(at);
  const kept = memory();
  const before = new Drafts(kept);
  before.begin('untitled:1', session.id);
  // The message is stored, but its answer is lost, so the next window does not know of it.
  const id = before.get('untitled:1')?.entryId ?? '';
  const state = JSON.stringify(kept.load());
  await before.send('untitled:1', 'Next.', session);
  const lost = JSON.parse(state) as Record<string, Draft>;
  Object.assign(lost['untitled:1'] ?? {}, { sent: 'Next.' });
  kept.save(lost);
  await at.stop();
  const after = new Drafts(kept);
  assert.equal(await after.send('untitled:1', 'Next.', session), id);
  const { entries } = await session.call('get_entries', {});
  assert.equal(entries.filter((entry) => entry.id === id).length, 1);
});

test('a text that was changed after a lost answer is another message', async (t) => {
  const session = await tour(await window(t));
  const kept = memory();
  const drafts = new Drafts(kept);
  drafts.begin('untitled:1', session.id);
  const first = drafts.get('untitled:1')?.entryId ?? '';
  await say(session, first, 'user', 'Next.');
  const draft = drafts.get('untitled:1');
  if (draft) draft.sent = 'Next.';
  const second = await drafts.send('untitled:1', 'Next, please.', session);
  assert.notEqual(second, first);
});

test('a draft that cannot be sent stays', async (t) => {
  const sessionDir = await folder(t);
  const at = connection(t, { sessionDir, summarizer: 'outline' });
  const session = await tour(at);
  const drafts = new Drafts(memory());
  drafts.begin('untitled:1', session.id);
  await session.call('begin_turn', {});
  const client = await session.client();
  // Another view moves the leaf, and this view has not got the notification yet.
  const other = client.appendMessage({
    sessionId: session.id,
    message: { role: 'user', content: 'Faster.' },
  });
  await assert.rejects(drafts.send('untitled:1', 'Slower.', session), { kind: 'leafMoved' });
  await other;
  assert.ok(drafts.get('untitled:1'));
  await drafts.send('untitled:1', 'Slower.', session);
});
