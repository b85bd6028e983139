// The 14 contracts of a store, with the numbers of the SDK. The SDK publishes this suite only for Python, as
// `run_session_store_conformance`; here it is in TypeScript.

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import {
  foldSessionSummary,
  InMemorySessionStore,
  type SessionStore,
  type SessionStoreEntry,
} from '@anthropic-ai/claude-agent-sdk';
import { store } from './fixture.js';

const KEY = { projectKey: 'proj', sessionId: 'sess' };
const SUB1 = { ...KEY, subpath: 'subagents/agent-1' };
const SUB2 = { ...KEY, subpath: 'subagents/agent-2' };

const e = (members: object): SessionStoreEntry => ({ type: 'x', ...members });

type Whole = Required<SessionStore>;

const contracts: Record<string, (store: Whole) => Promise<void>> = {
  '1. load returns what was appended, in order': async (store) => {
    const entries = [e({ uuid: 'b', n: 1 }), e({ uuid: 'a', n: 2 })];
    await store.append(KEY, entries);
    assert.deepEqual(await store.load(KEY), entries);
  },
  '2. an unknown key is null': async (store) => {
    assert.equal(await store.load({ projectKey: 'proj', sessionId: 'nope' }), null);
    await store.append(KEY, [e({ uuid: 'x', n: 1 })]);
    assert.equal(await store.load({ ...KEY, subpath: 'nope' }), null);
  },
  '3. appends keep the order of their calls': async (store) => {
    await store.append(KEY, [e({ uuid: 'z', n: 1 })]);
    await store.append(KEY, [e({ uuid: 'a', n: 2 }), e({ uuid: 'm', n: 3 })]);
    await store.append(KEY, [e({ uuid: 'b', n: 4 })]);
    const loaded = await store.load(KEY);
    assert.deepEqual(
      loaded?.map(({ n }) => n),
      [1, 2, 3, 4],
    );
  },
  '4. an append of nothing does nothing': async (store) => {
    await store.append(KEY, [e({ uuid: 'a', n: 1 })]);
    await store.append(KEY, []);
    assert.deepEqual(await store.load(KEY), [e({ uuid: 'a', n: 1 })]);
  },
  '5. sub-paths are apart from the main transcript': async (store) => {
    await store.append(KEY, [e({ uuid: 'm', n: 1 })]);
    await store.append(SUB1, [e({ uuid: 's', n: 1 })]);
    assert.deepEqual(await store.load(KEY), [e({ uuid: 'm', n: 1 })]);
    assert.deepEqual(await store.load(SUB1), [e({ uuid: 's', n: 1 })]);
  },
  '6. projects are apart': async (store) => {
    for (const projectKey of ['A', 'B']) {
      await store.append({ projectKey, sessionId: 's1' }, [e({ from: projectKey })]);
    }
    for (const projectKey of ['A', 'B']) {
      assert.deepEqual(await store.load({ projectKey, sessionId: 's1' }), [
        e({ from: projectKey }),
      ]);
      assert.equal((await store.listSessions(projectKey)).length, 1);
    }
  },
  '7. listSessions has the sessions of a project': async (store) => {
    await store.append({ projectKey: 'proj', sessionId: 'a' }, [e({ n: 1 })]);
    await store.append({ projectKey: 'proj', sessionId: 'b' }, [e({ n: 1 })]);
    await store.append({ projectKey: 'other', sessionId: 'c' }, [e({ n: 1 })]);
    const sessions = await store.listSessions('proj');
    assert.deepEqual(sessions.map(({ sessionId }) => sessionId).sort(), ['a', 'b']);
    assert.ok(sessions.every(({ mtime }) => Number.isInteger(mtime) && mtime > 1e12));
    assert.deepEqual(await store.listSessions('never-appended-project'), []);
  },
  '8. listSessions has no sub-paths': async (store) => {
    await store.append(KEY, [e({ n: 1 })]);
    await store.append(SUB1, [e({ n: 1 })]);
    const sessions = await store.listSessions('proj');
    assert.deepEqual(
      sessions.map(({ sessionId }) => sessionId),
      ['sess'],
    );
  },
  '9. a deleted session is null': async (store) => {
    await store.delete({ projectKey: 'proj', sessionId: 'never-written' });
    await store.append(KEY, [e({ n: 1 })]);
    await store.delete(KEY);
    assert.equal(await store.load(KEY), null);
  },
  '10. its sub-paths go with a session': async (store) => {
    const others = [
      { projectKey: 'proj', sessionId: 'sess2' },
      { projectKey: 'other-proj', sessionId: 'sess' },
    ];
    for (const key of [KEY, SUB1, SUB2, ...others]) await store.append(key, [e({ n: 1 })]);
    await store.delete(KEY);
    for (const key of [KEY, SUB1, SUB2]) assert.equal(await store.load(key), null);
    for (const key of others) assert.equal((await store.load(key))?.length, 1);
    assert.deepEqual(await store.listSubkeys(KEY), []);
    const sessions = await store.listSessions('proj');
    assert.deepEqual(
      sessions.map(({ sessionId }) => sessionId),
      ['sess2'],
    );
  },
  '11. a sub-path is deleted alone': async (store) => {
    for (const key of [KEY, SUB1, SUB2]) await store.append(key, [e({ n: 1 })]);
    await store.delete(SUB1);
    assert.equal(await store.load(SUB1), null);
    assert.equal((await store.load(SUB2))?.length, 1);
    assert.equal((await store.load(KEY))?.length, 1);
    assert.deepEqual(await store.listSubkeys(KEY), ['subagents/agent-2']);
  },
  '12. listSubkeys has the sub-paths of the session': async (store) => {
    const other = { projectKey: 'proj', sessionId: 'other', subpath: 'subagents/agent-x' };
    for (const key of [KEY, SUB1, SUB2, other]) await store.append(key, [e({ n: 1 })]);
    const subkeys = await store.listSubkeys(KEY);
    assert.deepEqual(subkeys.sort(), ['subagents/agent-1', 'subagents/agent-2']);
  },
  '13. listSubkeys has no main transcript': async (store) => {
    await store.append(KEY, [e({ n: 1 })]);
    assert.deepEqual(await store.listSubkeys(KEY), []);
    assert.deepEqual(await store.listSubkeys({ projectKey: 'proj', sessionId: 'never' }), []);
  },
  '14. summaries are those that the SDK folds': async (store) => {
    const at = (second: number, more: object = {}) =>
      e({ timestamp: `2024-01-01T00:00:0${second}.000Z`, ...more });
    await store.append(KEY, [at(0, { customTitle: 'first' }), at(1)]);
    await store.append(KEY, [at(2, { customTitle: 'second' })]);
    await store.append({ projectKey: 'other', sessionId: 'elsewhere' }, [at(0)]);
    const [summary, ...more] = await store.listSessionSummaries('proj');
    assert.ok(summary !== undefined && more.length === 0);
    assert.equal(summary.sessionId, 'sess');
    assert.ok(Number.isInteger(summary.mtime) && summary.mtime > 1e12);
    const [listed] = await store.listSessions('proj');
    assert.ok(listed !== undefined && summary.mtime >= listed.mtime);
    const refolded = foldSessionSummary(summary, KEY, [at(3)]);
    assert.equal(refolded.sessionId, 'sess');
    assert.equal(refolded.mtime, summary.mtime);
    await store.append(SUB1, [at(9, { customTitle: 'subagent' })]);
    const [after] = await store.listSessionSummaries('proj');
    assert.deepEqual(after?.data, summary.data);
    assert.deepEqual(await store.listSessionSummaries('never-appended-project'), []);
    await store.delete(KEY);
    assert.deepEqual(await store.listSessionSummaries('proj'), []);
  },
};

for (const [name, holds] of Object.entries(contracts)) {
  test(name, async (t: TestContext) => {
    await holds(await store(t));
    // The SDK's own store must pass the suite too.
    await holds(new InMemorySessionStore());
  });
}
