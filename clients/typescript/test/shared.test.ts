// Clients on one shared daemon: answers, commands, questions, renderers, watched sessions.

import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { realpath } from 'node:fs/promises';
import test, { type TestContext } from 'node:test';
import type { Client, ConnectOptions, EventResolved, UserAsked } from 'treelined';
import { conversation, shared, start } from './fixture.js';

/** Returns a function that starts clients of one daemon. */
async function meeting(t: TestContext) {
  const daemon = await shared(t);
  return async (name: string, options: ConnectOptions = {}): Promise<Client> => {
    const client = await start(t, { ...daemon, clientInfo: { name }, ...options });
    // If `closed` is not awaited, a client that waits for notifications does not keep the process alive.
    void client.closed;
    return client;
  };
}

test('clients of one socket have one daemon, and directories of their own', async (t) => {
  const join = await meeting(t);
  const [first, second] = [await join('first'), await join('second', { cwd: '/' })];
  const sessionId = await conversation(first);
  const { sessions } = await second.listSessions();
  assert.deepEqual(
    sessions.map((row) => [row.sessionId, row.cwd]),
    [[sessionId, await realpath('.')]],
  );
  assert.equal((await second.createSession()).session.cwd, '/');
});

test('a veto of one client holds the navigation of another', async (t) => {
  const join = await meeting(t);
  const editor = await join('editor');
  const guard = await join('guard', {
    answers: {
      session_before_tree: ({ preparation }) => ({ cancel: preparation.targetId === 'a1' }),
    },
  });
  const sessionId = await conversation(editor);
  await guard.openSession({ sessionId });
  const moved = new Promise((resolve) => guard.on('session_tree', resolve));
  const refused = await editor.navigateTree({ targetId: 'a1' });
  assert.equal(refused.reason, 'cancelledByClient');
  assert.equal((await editor.navigateTree({ targetId: 'u1' })).cancelled, false);
  await moved;
});

test('a command of one client is run by another', async (t) => {
  const join = await meeting(t);
  const [owner, editor] = [await join('owner'), await join('editor')];
  const sessionId = await conversation(editor);
  await owner.openSession({ sessionId });
  await owner.offerCommand(
    { name: 'last', description: 'Names the leaf', argumentHint: 'TEXT' },
    async ({ args, by, sessionId }, signal, extend) => {
      assert((await extend(60_000)) > 50_000);
      assert.equal(signal.aborted, false);
      const { leafId } = await owner.getLeaf({ sessionId: sessionId ?? null });
      return { output: `${by}: ${args}: ${leafId}`, prompt: 'go on' };
    },
  );
  await owner.offerCommand({ name: 'echo' }, ({ args }) => args);
  const { commands } = await editor.listCommands();
  assert.deepEqual(
    commands.map(({ name, by }) => [name, by]),
    [
      ['echo', 'owner'],
      ['last', 'owner'],
    ],
  );
  const ran = await editor.runCommand({ name: 'last', args: 'at', sessionId, timeoutMs: 1000 });
  assert.deepEqual(ran, { output: 'editor: at: a2', prompt: 'go on' });
  assert.deepEqual(await editor.runCommand({ name: 'echo', args: 'é\n' }), { output: 'é\n' });
  await owner.unregisterCommand({ name: 'echo' });
  await assert.rejects(editor.runCommand({ name: 'echo' }), { kind: 'commandNotFound' });
});

test('an error, a refused answer and the time are failures of a command', async (t) => {
  const join = await meeting(t);
  const errors: unknown[] = [];
  const owner = await join('owner', { onError: (error) => errors.push(error) });
  const editor = await join('editor');
  await owner.offerCommand({ name: 'fail' }, () => {
    throw new Error('no such item');
  });
  await owner.offerCommand({ name: 'wrong' }, () => ({ outptu: 'misspelt' }) as object);
  await owner.offerCommand({ name: 'wait' }, () => new Promise(() => {}));
  const failure = async (name: string) => {
    const why = await editor.runCommand({ name, timeoutMs: 200 }).catch((error: unknown) => error);
    return (why as { details: { reason: string; message?: string } }).details;
  };
  assert.deepEqual(await failure('fail'), {
    name: 'fail',
    reason: 'error',
    message: 'no such item',
  });
  assert.match((await failure('wrong')).message ?? '', /outptu/);
  assert.equal(errors.length, 1, 'the refused answer');
  assert.equal((await failure('wait')).reason, 'timeout');
  await assert.rejects(
    editor.offerCommand({ name: 'fail' }, () => 'mine'),
    { kind: 'commandExists' },
  );
});

test('a question of one client is answered by a person at another', async (t) => {
  const join = await meeting(t);
  const agent = await join('agent');
  const nobody = agent.askUser({ kind: 'confirm', title: 'Is anyone there?' });
  await assert.rejects(nobody, { kind: 'noUser' });
  const asked: UserAsked[] = [];
  await join('editor', {
    answers: {
      user_asked: (event) => {
        asked.push(event);
        return event.kind === 'select' ? { value: 'red' } : undefined;
      },
    },
  });
  const options = ['red', 'blue'];
  const chosen = await agent.askUser({ kind: 'select', title: 'Which one?', options });
  assert.deepEqual(chosen, { value: 'red' });
  const refused = await agent.askUser({ kind: 'confirm', title: 'Leave?' });
  assert.deepEqual(refused, { dismissed: true, reason: 'dismissed' });
  assert.deepEqual(
    asked.map(({ title, by }) => [title, by]),
    [
      ['Which one?', 'agent'],
      ['Leave?', 'agent'],
    ],
  );
});

test('the first answer takes the question back from the others', async (t) => {
  const join = await meeting(t);
  const agent = await join('agent');
  const waiting = await join('waiting', { answers: ['user_asked'] });
  const dismissed = new Promise<void>((resolve) => {
    waiting.answer('user_asked', (_, signal) => {
      signal.addEventListener('abort', () => resolve());
      return new Promise(() => {});
    });
  });
  const resolved = new Promise<EventResolved>((resolve) => waiting.on('event_resolved', resolve));
  const quick = await join('quick', { ui: ['confirm'] });
  quick.answer('user_asked', () => ({ value: true }));
  assert.deepEqual(await agent.askUser({ kind: 'confirm', title: 'Go?' }), { value: true });
  await dismissed;
  const { outcome, by } = await resolved;
  assert.deepEqual([outcome, by], ['answered', 'quick']);
});

test('messages reach clients with a person', async (t) => {
  const join = await meeting(t);
  const agent = await join('agent');
  const screen = await join('screen', { ui: [] });
  const shown = new Promise<string>((resolve) =>
    screen.on('user_notified', ({ message }) => resolve(message)),
  );
  const said = await agent.notifyUser({ message: 'The build is green.', level: 'info' });
  assert.deepEqual(said, { delivered: 1 });
  assert.equal(await shown, 'The build is green.');
});

test('the renderer of one client draws the rows of another', async (t) => {
  const join = await meeting(t);
  const [extension, editor] = [await join('extension'), await join('editor')];
  await extension.registerRenderer({
    customType: 'todo',
    preview: '{details.done} of 2',
    icon: '☑',
    style: 'success',
  });
  await conversation(editor);
  await editor.appendEntries({
    entries: [
      {
        type: 'custom_message',
        customType: 'todo',
        content: '',
        display: true,
        details: { done: 1 },
      },
    ],
  });
  const { nodes } = await editor.getTree({});
  const row = nodes[nodes.length - 1];
  assert.deepEqual([row?.preview, row?.icon, row?.style], ['1 of 2', '☑', 'success']);
});

test('a watching client hears of the sessions of another', async (t) => {
  const join = await meeting(t);
  const [watcher, editor] = [await join('watcher'), await join('editor')];
  const heard = new EventEmitter();
  watcher.on('sessions_changed', ({ changed, removed }) => {
    for (const row of changed) heard.emit(`${row.sessionId} has ${row.messageCount}`);
    for (const id of removed) heard.emit(`${id} is removed`);
  });
  await watcher.watchSessions();
  const { session } = await editor.createSession();
  const { sessionId } = session;
  const written = once(heard, `${sessionId} has 1`);
  await editor.appendMessage({ message: { role: 'user', content: 'hello' } });
  await written;
  const removed = once(heard, `${sessionId} is removed`);
  await editor.deleteSession({ sessionId });
  await removed;
  await watcher.unwatchSessions();
});
