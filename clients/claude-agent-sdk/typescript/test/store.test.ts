// Tests of the store beyond the contracts.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import {
  forkSession,
  foldSessionSummary,
  getSessionMessages,
  getSubagentMessages,
  InMemorySessionStore,
  listSessions,
  renameSession,
  type SessionKey,
  type SessionStore,
  type SessionStoreEntry,
} from '@anthropic-ai/claude-agent-sdk';
import { entryOf, recordOf } from '../src/entries.js';
import { KeyTaken, TreelinedSessionStore } from '../src/index.js';
import { type Json, type Parts, sessionOf, textOf } from '../src/keys.js';
import { Turn } from '../src/turn.js';
import { answered, folder, root, said, start, store } from './fixture.js';

const KEY = { projectKey: 'p', sessionId: 's' };
const ID = sessionOf(['p', 's']);

interface Fixture {
  keys: { key: Parts; text: string; id: string }[];
  records: { record: Json; entry: Json }[];
}

const fixture = new URL('tests/data/stores/claude-agent-sdk.json', root);
const shared = JSON.parse(await readFile(fixture, 'utf8')) as Fixture;

const mark = (n: number, more: object = {}): SessionStoreEntry => ({ type: 'mark', n, ...more });

test('ids are those of the Python package', () => {
  for (const { key, text, id } of shared.keys) {
    assert.equal(textOf(key), text);
    assert.equal(sessionOf(key), id);
  }
});

test('entries are those of the Python package, and come back as records', () => {
  for (const { record, entry } of shared.records) {
    const whole = JSON.stringify(record);
    const made = entryOf(record, 's', new Turn(), new Set());
    assert.deepEqual(JSON.parse(JSON.stringify(made)), entry);
    assert.equal(JSON.stringify(record), whole);
    const stored = {
      id: 'made',
      timestamp: 'made',
      ...(JSON.parse(JSON.stringify(entry)) as Json),
    };
    assert.equal(JSON.stringify(recordOf(stored, 's')), whole);
  }
  assert.ok(shared.records.length > 30);
});

test('what the daemon stored comes back with its members in order', async (t) => {
  const own = await store(t);
  let deep: unknown = 1;
  for (let level = 0; level < 300; level++) deep = [deep];
  const records = shared.records.map(({ record }) => record as SessionStoreEntry);
  records.push({ type: 'x', a: '\ud800 \udc00', c: 1.5, deep });
  await own.append(KEY, records);
  assert.equal(JSON.stringify(await own.load(KEY)), JSON.stringify(records));
});

/** A generator of numbers below 1, the same in each run. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
}

/** The SDK's own store, but each `uuid` is stored once, as the SDK requires of other stores. */
class Model extends InMemorySessionStore {
  override async append(key: SessionKey, entries: SessionStoreEntry[]): Promise<void> {
    const seen = new Set(this.getEntries(key).map(({ uuid }) => uuid));
    const kept = entries.filter(({ uuid }) => {
      const isNew = uuid === undefined || !seen.has(uuid);
      seen.add(uuid);
      return isNew;
    });
    if (kept.length > 0) await super.append(key, kept);
  }
}

async function told(store: Required<SessionStore>, project: string): Promise<unknown> {
  const listed = await store.listSessions(project);
  const summaries = await store.listSessionSummaries(project);
  return [
    listed.map(({ sessionId }) => sessionId).sort(),
    summaries.map(({ sessionId, data }) => JSON.stringify([sessionId, data])).sort(),
  ];
}

test('random calls from two processes have the results of the store in memory', async (t) => {
  const chance = seeded(17);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(chance() * list.length)] as T;
  const dir = await folder(t);
  const stores = [await store(t, dir), await store(t, dir)];
  const model = new Model();
  const mains = ['p', 'p q'].flatMap((projectKey) =>
    ['s', 't'].map((sessionId) => ({ projectKey, sessionId })),
  );
  for (let turn = 0; turn < 150; turn++) {
    const main = pick(mains);
    const key: SessionKey = chance() < 0.4 ? { ...main, subpath: pick(['a/b', 'c']) } : main;
    const act = chance();
    if (act < 0.7) {
      const records = Array.from({ length: 1 + Math.floor(chance() * 4) }, (_, number) => {
        const parent = pick([null, `u${Math.floor(chance() * 30)}`]);
        const title = { customTitle: `title ${turn}` };
        const uuid = `u${Math.floor(chance() * 30)}`;
        return pick([said(uuid, parent, `${turn} ${number}`, title), mark(turn)]);
      });
      await pick(stores).append(key, records);
      await model.append(key, records);
    } else if (act < 0.8) {
      await pick(stores).delete(key);
      await model.delete(key);
    }
    const own = pick(stores);
    assert.deepEqual(await own.load(key), await model.load(key));
    assert.deepEqual((await own.listSubkeys(main)).sort(), (await model.listSubkeys(main)).sort());
    assert.deepEqual(await told(own, main.projectKey), await told(model, main.projectKey));
  }
});

test('branches are those of the transcript', async (t) => {
  const client = await start(t);
  const own = new TreelinedSessionStore({ client });
  await own.append(KEY, [said('a', null, 'one'), answered('b', 'a', '1')]);
  await own.append(KEY, [said('c', 'b', 'by plane'), answered('d', 'c', '2'), mark(1)]);
  await own.append(KEY, [said('e', 'b', 'by train'), answered('f', 'e', '3')]);
  await client.openSession({ sessionId: ID });
  const { branches } = await client.listBranches({ sessionId: ID });
  assert.deepEqual(
    branches.map(({ name, forkId, isActive }) => [name, forkId, isActive]),
    [
      ['by plane', 'b', false],
      ['by train', 'b', true],
    ],
  );
});

test('a repeated append stores nothing twice, and what is there stays', async (t) => {
  const dir = await folder(t);
  const [one, other] = [await store(t, dir), await store(t, dir)];
  const records = [said('a', null, 'one'), said('b', 'a', 'two')];
  await one.append(KEY, records);
  await one.append(KEY, records);
  await other.append(KEY, [
    said('b', 'a', 'other'),
    said('c', 'lost', 'three'),
    said('c', 'b', 'x'),
  ]);
  const loaded = (await one.load(KEY)) as unknown as { message: { content: string } }[];
  assert.deepEqual(
    loaded.map(({ message }) => message.content),
    ['one', 'two', 'three'],
  );
});

test('appends are in the order of their calls, one of which fails', async (t) => {
  const own = await store(t);
  const calls = Array.from({ length: 20 }, (_, n) =>
    own.append(KEY, [n === 10 ? mark(n, { bad: 10n }) : mark(n)]),
  );
  const outcomes = await Promise.allSettled(calls);
  assert.deepEqual(
    outcomes.flatMap(({ status }, n) => (status === 'rejected' ? n : [])),
    [10],
  );
  const loaded = await own.load(KEY);
  assert.deepEqual(
    loaded?.map(({ n }) => n),
    Array.from({ length: 20 }, (_, n) => n).filter((n) => n !== 10),
  );
});

test('a session of another key is refused', async (t) => {
  const client = await start(t);
  await client.createSession({ sessionId: ID, write: 'now' });
  const own = new TreelinedSessionStore({ client });
  await assert.rejects(own.append(KEY, [mark(1)]), KeyTaken);
  await assert.rejects(own.load(KEY), KeyTaken);
  await assert.rejects(own.load({ ...KEY, subpath: '' }), /leave it out/);
  assert.deepEqual(await own.listSessions('p'), []);
});

test('a summary is that of all records of all processes', async (t) => {
  const dir = await folder(t);
  const stores = [await store(t, dir), await store(t, dir)] as const;
  for (let n = 0; n < 600; n++) {
    const more = n % 50 === 0 ? { gitBranch: `b${n}` } : {};
    await stores[n % 7 === 0 ? 0 : 1].append(KEY, [said(`u${n}`, null, `prompt ${n}`, more)]);
  }
  const client = await start(t, dir);
  for (const own of [new TreelinedSessionStore({ client }), ...stores]) {
    const [summary] = await own.listSessionSummaries('p');
    const records = (await own.load(KEY)) ?? [];
    assert.equal(records.length, 600);
    assert.deepEqual(summary?.data, foldSessionSummary(undefined, KEY, records).data);
  }
  const customType = 'claude-agent-sdk.summary.javascript';
  const { entries } = await client.getEntries({ sessionId: ID, customType });
  // The summary was stored in between, so that a new process needs to read only a few records.
  assert.ok(entries.length >= 2);
});

test('the functions of the SDK work on the store', async (t) => {
  const client = await start(t);
  const sessionStore = new TreelinedSessionStore({ client });
  const dir = await folder(t);
  const session = '0199a1f2-7c3e-4d10-9b55-5a0c1b7f2d31';
  const [u1, a1, u2] = [1, 2, 3].map((n) => `0199a1f2-7c3e-4d10-9b55-00000000000${n}`) as [
    string,
    string,
    string,
  ];
  // The SDK derives the name of a project from a directory.
  const named: string[] = [];
  const spy: SessionStore = {
    append: async (key) => void named.push(key.projectKey),
    load: async () => null,
  };
  await renameSession(session, 'x', { dir, sessionStore: spy });
  const key = { projectKey: named[0] ?? '', sessionId: session };
  await sessionStore.append(key, [said(u1, null, 'Plan a trip.'), answered(a1, u1, 'Where?')]);
  const agent = { ...key, subpath: 'subagents/agent-7' };
  const side = { isSidechain: true, agentId: '7' };
  await sessionStore.append(agent, [said(u2, null, 'Look.', side)]);

  await renameSession(session, 'A trip', { dir, sessionStore });
  const [info] = await listSessions({ dir, sessionStore });
  assert.deepEqual([info?.sessionId, info?.summary], [session, 'A trip']);
  const messages = await getSessionMessages(session, { dir, sessionStore });
  assert.deepEqual(
    messages.map(({ uuid }) => uuid),
    [u1, a1],
  );
  const seen = await getSubagentMessages(session, '7', { dir, sessionStore });
  assert.deepEqual(
    seen.map(({ uuid }) => uuid),
    [u2],
  );
  const fork = await forkSession(session, { dir, sessionStore });
  const copied = await getSessionMessages(fork.sessionId, { dir, sessionStore });
  assert.equal(copied.length, 2);
  const { sessions } = await client.getFamily({
    sessionId: sessionOf([key.projectKey, session]),
  });
  assert.deepEqual(sessions.flatMap(({ comesFrom }) => comesFrom?.kind ?? []).sort(), [
    'fork',
    'subagent',
  ]);
});

test('a store starts and ends a daemon', async (t) => {
  const before = process.env.TREELINED_SESSION_DIR;
  process.env.TREELINED_SESSION_DIR = await folder(t);
  t.after(() => {
    if (before === undefined) delete process.env.TREELINED_SESSION_DIR;
    else process.env.TREELINED_SESSION_DIR = before;
  });
  for (const expected of [null, [mark(1)]]) {
    const own = new TreelinedSessionStore({ durability: 'always' });
    assert.deepEqual(await own.load(KEY), expected);
    await own.append(KEY, [mark(1)]);
    await own.close();
    await assert.rejects(own.load(KEY), /closed/);
  }
});
