import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { Bridge, type ToPage } from '../src/core/bridge.js';
import { tour, until, window } from './fixture.js';

interface Said {
  id?: number;
  method?: string;
  result?: { nodes?: unknown[]; session?: { sessionId: string }; protocolVersion?: number };
  error?: { data: { kind: string } };
}

async function page(t: TestContext) {
  const at = await window(t);
  const session = await tour(at);
  const posted: ToPage[] = [];
  const bridge = new Bridge(at, (message) => posted.push(message));
  t.after(() => bridge.dispose());
  await bridge.receive({ socket: 1, what: 'open' });
  const said = () =>
    posted.filter(({ what }) => what === 'text').map(({ text }) => JSON.parse(text ?? '') as Said);
  const call = async (id: number, method: string, params: object) => {
    const text = JSON.stringify({ jsonrpc: '2.0', id, method, params });
    await bridge.receive({ socket: 1, what: 'text', text });
    return said().find((message) => message.id === id);
  };
  return { at, session, bridge, posted, said, call };
}

test('the page calls the daemon of the window, and hears what the window hears', async (t) => {
  const { session, bridge, said, call } = await page(t);
  await bridge.receive({ socket: 1, what: 'text', text: '{"token":"editor"}' });
  assert.deepEqual(said(), []);
  assert.equal((await call(1, 'initialize', {}))?.result?.protocolVersion, 1);
  assert.ok((await call(2, 'open_session', { sessionId: session.id }))?.result?.session);
  assert.equal((await call(3, 'get_tree', { sessionId: session.id }))?.result?.nodes?.length, 9);
  assert.equal(
    (await call(4, 'get_entry', { sessionId: session.id, entryId: 'x' }))?.error?.data.kind,
    'entryNotFound',
  );
  await call(5, 'set_leaf', { sessionId: session.id, leafId: 'a1' });
  await until(
    () => said().some(({ method }) => method === 'session_tree'),
    'the move is announced',
  );
  assert.equal(session.leafId, 'a1');
  // The window still has the sessions open that the page closes.
  bridge.dispose();
  assert.equal((await session.call('get_leaf', {})).leafId, 'a1');
});

test('the page connects again after the daemon has ended', async (t) => {
  const { at, bridge, posted, call } = await page(t);
  process.kill((await at.client()).pid ?? 0, 'SIGKILL');
  await until(() => posted.some(({ what }) => what === 'close'), 'the socket is closed');
  await bridge.receive({ socket: 2, what: 'open' });
  assert.deepEqual(posted.at(-1), { socket: 2, what: 'open' });
  assert.equal(await call(9, 'initialize', {}), undefined);
});

test('the page cannot end the daemon of the window', async (t) => {
  const { at, call } = await page(t);
  assert.deepEqual((await call(1, 'shutdown', {}))?.result, {});
  await at.call('list_sessions', {});
});
