// Tests the daemon's Content-Length framing with a client that knows no other framing.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import test from 'node:test';
import {
  CancellationTokenSource,
  createMessageConnection,
  type MessageConnection,
  ResponseError,
  StreamMessageReader,
  StreamMessageWriter,
} from 'vscode-jsonrpc/node';
import { command, folder } from './fixture.js';

async function attach(t: test.TestContext): Promise<[MessageConnection, ChildProcess]> {
  const daemon = spawn(command, ['--session-dir', await folder(t)]);
  const connection = createMessageConnection(
    new StreamMessageReader(daemon.stdout),
    new StreamMessageWriter(daemon.stdin),
  );
  connection.onError(([error]) => assert.fail(error));
  connection.listen();
  t.after(() => {
    connection.dispose();
    daemon.kill('SIGKILL');
  });
  return [connection, daemon];
}

/** A shared daemon has no working directory for new sessions, so each request names one. */
const cwd = process.cwd();
const capabilities = { answers: { session_before_tree: {} } };

test('vscode-jsonrpc can call the daemon', async (t) => {
  const [connection, daemon] = await attach(t);
  const server = await connection.sendRequest<{ protocolVersion: number }>('initialize', {
    protocolVersion: 1,
    cwd,
    capabilities,
  });
  assert.equal(server.protocolVersion, 1);

  const appended: string[] = [];
  connection.onNotification('entries_appended', (params: { entryIds: string[] }) => {
    appended.push(...params.entryIds);
  });
  await connection.sendRequest('create_session');
  const text = 'a\u2028b\nc 😀 '.repeat(1_000_000);
  await connection.sendRequest('append_message', {
    entryId: 'u1',
    message: { role: 'user', content: text },
  });
  const { entry } = await connection.sendRequest<{ entry: { message: { content: string } } }>(
    'get_entry',
    { entryId: 'u1' },
  );
  assert(entry.message.content === text, 'over 10 MB, byte for byte');
  assert.deepEqual(appended, ['u1']);

  await assert.rejects(connection.sendRequest('get_entry', { entryId: 'none' }), (error) => {
    assert(error instanceof ResponseError);
    assert.equal((error.data as { kind: string }).kind, 'entryNotFound');
    return true;
  });

  const exited = once(daemon, 'exit');
  connection.end();
  assert.deepEqual(await exited, [0, null]);
});

test('vscode-jsonrpc can answer questions and cancel requests', async (t) => {
  const [connection] = await attach(t);
  await connection.sendRequest('initialize', { protocolVersion: 1, cwd, capabilities });
  await connection.sendRequest('create_session');
  for (const entryId of ['u1', 'a1']) {
    const role = entryId === 'u1' ? 'user' : 'assistant';
    await connection.sendRequest('append_message', { entryId, message: { role, content: [] } });
  }

  const answering = connection.onNotification(
    'session_before_tree',
    ({ eventId }: { eventId: string }) => {
      void connection.sendRequest('answer_event', { eventId, result: { cancel: true } });
    },
  );
  const vetoed = await connection.sendRequest<{ reason: string }>('navigate_tree', {
    targetId: 'u1',
  });
  assert.equal(vetoed.reason, 'cancelledByClient');
  answering.dispose();

  const abort = new CancellationTokenSource();
  connection.onNotification('session_before_tree', () => abort.cancel());
  const aborted = await connection.sendRequest<{ reason: string }>(
    'navigate_tree',
    { targetId: 'u1' },
    abort.token,
  );
  assert.equal(aborted.reason, 'aborted');
});
