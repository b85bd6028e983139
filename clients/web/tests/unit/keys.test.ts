import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BINDINGS, bindingOf, keyName, typed, type Key } from '../../src/model/keys.ts';

const key = (name: string, held: Partial<Key> = {}): Key => ({
  key: name,
  ctrlKey: false,
  altKey: false,
  shiftKey: false,
  metaKey: false,
  ...held,
});

test('every key has one action', () => {
  const keys = BINDINGS.flatMap((binding) => binding.keys);
  assert.equal(new Set(keys).size, keys.length);
});

test('letters contain their shift', () => {
  assert.equal(keyName(key('L', { shiftKey: true })), 'L');
  assert.equal(keyName(key('ArrowLeft', { ctrlKey: true })), 'ctrl+left');
  assert.equal(keyName(key('D', { ctrlKey: true, shiftKey: true })), 'ctrl+d');
  assert.equal(keyName(key('F3', { shiftKey: true })), 'shift+f3');
  assert.equal(keyName(key('a', { metaKey: true })), undefined);
  assert.equal(keyName(key('Shift')), undefined);
});

test('actions of a daemon have no key in a file', () => {
  assert.equal(bindingOf(key('u'), true)?.action, 'undo');
  assert.equal(bindingOf(key('u'), false), undefined);
});

test('letters that are no command begin a search', () => {
  assert.equal(typed(key('b')), 'b');
  assert.equal(typed(key('ä')), 'ä');
  assert.equal(typed(key('b', { ctrlKey: true })), undefined);
  assert.equal(typed(key('Enter')), undefined);
});
