import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fold, marksOf, matches, parseQuery, wireQuery, type Query } from '../../src/text/query.ts';

function parsed(text: string): Query {
  const query = parseQuery(text);
  assert.ok(query);
  return query;
}

test('words, phrases and patterns are told apart', () => {
  assert.deepEqual(parsed('Build "the Cache" x').words, ['build', 'the cache', 'x']);
  assert.equal(parsed('/a+b/').pattern?.source, 'a+b');
  assert.equal(parseQuery('   '), undefined);
  assert.ok(parsed('/(/').error);
  assert.deepEqual(wireQuery(parsed('/x/')), { query: 'x', mode: 'regex' });
  assert.deepEqual(wireQuery(parsed('x "y z"')), { query: 'x "y z"', mode: 'words' });
});

test('all words must occur, whatever their case', () => {
  const query = parsed('Cache build');
  assert.ok(matches(query, fold('Build the CACHE')));
  assert.ok(!matches(query, fold('the cache')));
  assert.ok(!matches(parsed('/(/'), 'x'));
});

test('marks are ascending and do not overlap', () => {
  assert.deepEqual(marksOf(parsed('ab bc'), 'xabcx ab'), [
    [1, 4],
    [6, 8],
  ]);
  assert.deepEqual(marksOf(parsed('/b./'), 'abcabd'), [
    [1, 3],
    [4, 6],
  ]);
  assert.deepEqual(marksOf(parsed('a.b'), 'axb a.b'), [[4, 7]]);
  assert.deepEqual(marksOf(undefined, 'x'), []);
});

test('a pattern that matches nothing marks nothing and ends', () => {
  assert.deepEqual(marksOf(parsed('/x*/'), 'aaa'), []);
});
