import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hitLook, MODES, nextMode, type Query, search } from '../src/core/search.js';
import type { Connection } from '../src/core/connection.js';
import { say, tour, window } from './fixture.js';

const find = (at: Connection, typed: string, more: Partial<Query> = {}) =>
  search(at, { typed, mode: 'ask', ...more }, new AbortController().signal);

test('a question finds what has not all of its words, and says why a branch was left', async (t) => {
  const at = await window(t);
  const session = await tour(at);
  await session.call('append_label', { targetId: 'u2', label: 'a dead end' });
  const typed = 'did a zebra clear the cache role:user';
  const [hit] = (await find(at, typed)).hits;
  assert.equal(hit?.entryId, 'u2');
  assert.match(
    hitLook(hit).detail,
    /^A tour · now · a branch that was left · because: a dead end · instead: Add the import\.$/,
  );
  // No entry has all of these words.
  for (const { mode } of MODES.slice(1)) {
    const { hits, note } = await find(at, typed, { mode });
    assert.deepEqual([hits, note], [[], 'Nothing matches.'], mode);
  }
  assert.equal((await find(at, 'stale CACHE', { mode: 'words' })).hits.length, 1);
  assert.equal((await find(at, 'stale CACHE', { mode: 'literal' })).hits.length, 0);
  assert.deepEqual(
    ['ask', 'words', 'literal'].map((mode) => nextMode(mode as never)),
    ['words', 'literal', 'ask'],
  );
});

test('a session does not fill the list, and the rest of it is found', async (t) => {
  const at = await window(t);
  const session = await tour(at);
  for (const n of [1, 2, 3, 4, 5]) await say(session, `z${n}`, 'user', `Zebra, number ${n}.`);
  const { hits, more } = await find(at, 'zebra');
  assert.equal(hits.length, 3);
  assert.deepEqual(more, [{ sessionId: session.id, count: 2 }]);
  assert.equal((await find(at, 'zebra', { sessionId: session.id })).hits.length, 5);
});

// An incomplete filter was once an error message at each pause of typing.
test('a query that is not finished is not an error, and is completed', async (t) => {
  const at = await window(t);
  await tour(at);
  const { completions, note } = await find(at, 'cache 😀 ro');
  assert.deepEqual(
    completions.map(({ query }) => query),
    ['cache 😀 role:'],
  );
  assert.ok(completions[0]?.about);
  assert.equal(note, undefined);
  const unfinished = await find(at, 'cache role:');
  assert.match(unfinished.note ?? '', /role/);
  assert.ok(unfinished.completions.some(({ query }) => query === 'cache role:user'));
  assert.ok((await find(at, '')).completions.length > 5);
  assert.deepEqual((await find(at, 'cache ')).completions, []);
  assert.match((await find(at, 'cacke')).note ?? '', /; cache counts instead$/);
  assert.match((await find(at, 'bache')).note ?? '', /; did you mean cache\?$/);
});
