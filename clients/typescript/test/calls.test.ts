// Calls: params, results, errors, large messages, line separators.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import test from 'node:test';
import { PROTOCOL_VERSION, SCHEMA_HASH, TreelinedError } from 'treelined';
import { conversation, folder, start } from './fixture.js';

test('initialize returns the name and version of the daemon', async (t) => {
  const client = await start(t, { summarizer: 'outline' });
  assert.equal(client.server.protocolVersion, PROTOCOL_VERSION);
  assert.equal(client.server.serverInfo.name, 'treelined');
  assert.equal(client.server.capabilities.summarizer, 'outline');
});

test('the daemon and the types come from the same schema', async (t) => {
  const client = await start(t);
  assert.equal(client.server.schemaHash, SCHEMA_HASH);
});

test('a conversation can be written, read and navigated', async (t) => {
  const cwd = await folder(t);
  const client = await start(t, { cwd });
  await conversation(client);

  const { nodes } = await client.getTree({ render: 'unicode' });
  assert.deepEqual(
    nodes.map((node) => node.preview),
    ['says u1', 'says a1', 'says u2', 'says a2'],
  );
  const { entries } = await client.getPath({ entryId: 'a1' });
  const [first] = entries;
  assert(first?.type === 'message', 'known entries are told apart by their type');
  assert.deepEqual(first.message.content, [{ type: 'text', text: 'says u1' }]);

  const moved = await client.navigateTree({ targetId: 'u2' });
  assert.equal(moved.editorText, 'says u2');
  assert.equal(moved.newLeafId, 'a1');
  assert.equal((await client.undoNavigation()).newLeafId, 'a2');
  const { preparation } = await client.navigateTree({ targetId: 'a1', dryRun: true });
  assert.deepEqual(
    preparation.entriesToSummarize?.map((entry) => entry.id),
    ['u2', 'a2'],
  );

  const { sessions } = await client.listSessions({ cwd });
  assert.equal(sessions[0]?.messageCount, 4);
});

test('null is sent where it is a position', async (t) => {
  const client = await start(t);
  await conversation(client);
  assert.equal((await client.setLeaf({ leafId: null })).newLeafId, null);
  const root = await client.appendMessage({
    parentId: null,
    expectedLeafId: null,
    message: { role: 'user', content: 'another root' },
  });
  const { entries } = await client.getChildren({ entryId: null });
  assert.deepEqual(
    entries.map((entry) => entry.id),
    ['u1', root.entryId],
  );
});

test('errors have a kind, details and retryable', async (t) => {
  const client = await start(t);
  const failure = async (call: Promise<unknown>): Promise<TreelinedError> => {
    const error = await call.then(
      () => assert.fail('it should have failed'),
      (error: unknown) => error,
    );
    assert(error instanceof TreelinedError, String(error));
    return error;
  };

  const none = await failure(client.getTree({ sessionId: 'nowhere' }));
  assert.equal(none.kind, 'sessionNotFound');
  assert.equal(none.code, 1100);

  await conversation(client);
  const missing = await failure(client.getEntry({ entryId: 'nothing' }));
  assert(missing.is('entryNotFound'));
  assert.equal(missing.details.entryId, 'nothing');
  assert.match(missing.message, /^get_entry: /);

  const moved = await failure(client.setLeaf({ leafId: 'u1', expectedLeafId: 'a1' }));
  assert(moved.is('leafMoved'));
  assert.deepEqual(moved.details.leafId, 'a2');

  const wrong = await failure(client.call('get_entry', { entry: 'a1' } as never));
  assert(wrong.is('invalidParams'));
  assert.equal(wrong.retryable, false);
  assert.equal(typeof wrong.details.field, 'string');

  const unknown = await failure(client.call('get_rich' as never, {} as never));
  assert.equal(unknown.kind, 'methodNotFound');

  const large = await start(t, { args: ['--max-frame-bytes', '70000', '--summarizer', 'none'] });
  const tooLarge = await failure(
    large.appendMessage({ message: { role: 'user', content: 'x'.repeat(80_000) } }),
  );
  assert.equal(tooLarge.kind, 'requestTooLarge');
  assert.deepEqual((await large.listSessions()).sessions, [], 'the connection goes on');
  await conversation(large);
  const summary = await failure(large.navigateTree({ targetId: 'a1', summarize: true }));
  assert.equal(summary.kind, 'summarizerUnavailable');
});

test('a message of 20 MB is written and read', async (t) => {
  const client = await start(t);
  await client.createSession();
  const text = 'päckchen\n'.repeat(2_000_000);
  const { entryId } = await client.appendMessage({ message: { role: 'user', content: text } });
  const { entry } = await client.getEntry({ entryId });
  assert(entry.type === 'message');
  assert(entry.message.content === text, 'byte for byte');
});

test('line separators other than line feeds stay inside messages', async (t) => {
  const client = await start(t);
  const { session } = await client.createSession();
  const text = 'a\u2028b\u2029c\u0085d\re\r\nf\vg\fh\ni\u001e\ufeff😀';
  const { entryId } = await client.appendMessage({ message: { role: 'user', content: text } });
  const { entry } = await client.getEntry({ entryId });
  assert(entry.type === 'message');
  assert.equal(entry.message.content, text);
  assert(session.path);
  const file = await readFile(session.path, 'utf8');
  assert.equal(file.trimEnd().split('\n').length, 2, 'the header and one entry');
});

test('pipelined calls get their own responses and take effect in order', async (t) => {
  const client = await start(t);
  await client.createSession();
  const ids = Array.from({ length: 500 }, (_, index) => `m${index}`);
  const results = await Promise.all(
    ids.map((entryId) =>
      client.appendMessage({ entryId, message: { role: 'user', content: entryId } }),
    ),
  );
  assert.deepEqual(
    results.map((result) => result.entryId),
    ids,
  );
  const { entries } = await client.getEntries();
  assert.deepEqual(
    entries.map((entry) => entry.id),
    ids,
  );
});

test('rpc.discover returns the OpenRPC document', async (t) => {
  const client = await start(t);
  const document = await client.discover();
  const checkedIn = new URL('../../../../schema/openrpc.json', import.meta.url);
  assert.deepEqual(document, JSON.parse(await readFile(checkedIn, 'utf8')));
});
