import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatRoute, parseRoute } from '../../src/model/route.ts';

test('a fragment names the session by its file or its id, and never the token', () => {
  const path = '/a b/é&e=x#%.jsonl';
  for (const route of [{}, { entry: 'e 1' }, { session: 's', entry: '&' }, { path, entry: '#' }]) {
    assert.deepEqual(parseRoute(formatRoute(route)), route);
  }
  assert.equal(formatRoute({ path: '/x', session: 's', entry: 'e' }), '#p=%2Fx&e=e');
  assert.equal(formatRoute({ token: 't', session: 's' }), '#s=s');
});

test('unknown and broken parts of a fragment name nothing', () => {
  assert.deepEqual(parseRoute('#e=%E0%A4&constructor=x&__proto__=y&s=a'), { session: 'a' });
});
