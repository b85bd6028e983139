// Tests of the calls of one session, and of the program that a client starts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Client, connect } from 'treelined';
import { command, folder, start } from './fixture.js';

async function createWith(client: Client, entryId: string): Promise<string> {
  const { sessionId } = (await client.createSession()).session;
  const message = { role: 'user' as const, content: 'x' };
  await client.appendMessage({ sessionId, entryId, message });
  return sessionId;
}

// If two sessions were open, every call once had to name one.
test('the calls of a session are about it unless they name another', async (t) => {
  const client = await start(t);
  const first = client.session(await createWith(client, 'u1'));
  const second = client.session(await createWith(client, 'u2'));
  assert.equal((await first.getLeaf()).leafId, 'u1');
  assert.equal((await second.getLeaf()).leafId, 'u2');
  assert.equal((await first.getLeaf({ sessionId: second.sessionId })).leafId, 'u2');
  await first.createSession();
  assert.equal((await first.call('get_leaf', {})).leafId, 'u1');
});

test('the program is that of TREELINED_BIN before the PATH', async (t) => {
  const env = { ...process.env, TREELINED_BIN: command };
  const client = await connect({ env, sessionDir: await folder(t) });
  t.after(() => client.close());
  assert.deepEqual((await client.listSessions()).sessions, []);
  await assert.rejects(connect({ env: { PATH: '/no/bin', TREELINED_BIN: '/no/treelined' } }), {
    message: /tried: \/no\/treelined \(TREELINED_BIN\)/,
  });
  await assert.rejects(connect({ env: { PATH: '/no/bin' } }), {
    message:
      /tried: TREELINED_BIN \(not set\), the package treelined-\w+-\w+, treelined on the PATH \(\/no\/bin\)/,
  });
});
