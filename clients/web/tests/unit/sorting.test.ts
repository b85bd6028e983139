import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answersOf, tagsOf, type Answer } from '../../src/model/sorting.ts';

const answer = (tipId: string, group: string | undefined, forkId: string, at: string): Answer => ({
  tipId,
  name: tipId,
  forkId,
  lastActivity: at,
  isActive: false,
  ...(group === undefined ? {} : { group }),
});

test('the candidates are those of the newest question that has several answers', () => {
  const of = (branches: Answer[]) => answersOf(branches).map(({ tipId }) => tipId);
  const old = [answer('a', 'why', 'f1', '1'), answer('b', 'why', 'f1', '2')];
  const alone = [answer('c', 'alone', 'f2', '9'), answer('d', undefined, 'f2', '9')];
  assert.deepEqual(of([...old, ...alone]), ['a', 'b']);
  // The same name at another fork is another question.
  const again = [answer('e', 'why', 'f3', '3'), answer('f', 'why', 'f3', '1')];
  assert.deepEqual(of([...old, ...again]), ['e', 'f']);
  assert.deepEqual(of(alone), []);
});

test('a text adds tags, and takes away those behind a dash', () => {
  assert.deepEqual(tagsOf(' #build, ui  -old - '), { add: ['#build', 'ui'], remove: ['old'] });
});
