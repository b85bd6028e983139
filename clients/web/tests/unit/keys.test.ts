import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
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

// Here `N` once did nothing, and `p` and `W` did other things than in the terminal.
test('the keys are those of the terminal client', () => {
  const readme = readFileSync(new URL('../../../tui/README.md', import.meta.url), 'utf8');
  const table = /<!-- keys -->\n([^]*?)<!-- end of keys -->/u.exec(readme)?.[1] ?? '';
  const terminal = new Map<string, string>();
  const keysOf = new Map<string, string[]>();
  for (const line of table.split('\n').slice(2)) {
    const [keys = '', name = ''] = line.split('|').slice(1);
    const action = name
      .trim()
      .replaceAll('`', '')
      .replace(/-preview$/u, '-path');
    const named = [...keys.matchAll(/`([^`]+)`/gu)].map(([, key = '']) => key);
    keysOf.set(action, named);
    for (const key of named) terminal.set(key, action);
  }
  assert.ok(terminal.size > 60);
  for (const { action, keys } of BINDINGS) {
    for (const key of keys) {
      // The tree of the page has no columns, so this key shows the statistics.
      const there = terminal.get(key) === 'columns' ? 'stats' : (terminal.get(key) ?? action);
      assert.equal(there, action, key);
    }
    const letters = (keysOf.get(action) ?? []).filter((key) => key.length === 1);
    assert.deepEqual(
      letters.filter((key) => !keys.includes(key)),
      [],
      action,
    );
  }
});

test('letters that are not commands are known', () => {
  assert.equal(typed(key('b')), 'b');
  assert.equal(typed(key('ä')), 'ä');
  assert.equal(typed(key('b', { ctrlKey: true })), undefined);
  assert.equal(typed(key('Enter')), undefined);
});

/** Each client once had different keys for the same action. */
test('the keys are those of the table that all clients share', () => {
  const table = readFileSync(new URL('../../../../schema/keys.tsv', import.meta.url), 'utf8');
  const rows = table.split('\n').filter((row) => row !== '' && !row.startsWith('#'));
  for (const row of rows) {
    const [name = '', , , page = ''] = row.split('\t');
    const keys = page.split(' ').filter((each) => each !== '-');
    if (name.endsWith('!')) {
      for (const each of keys) assert.equal(bindingOf(key(each), true), undefined, name);
      continue;
    }
    const bound = BINDINGS.find((binding) => binding.action === name)?.keys ?? [];
    assert.deepEqual(bound, keys, name);
  }
  assert.ok(rows.length > 30);
  // An action of the page that is missing in the table was once not noticed, since only the rows of the table were
  // compared.
  const listed = new Set(rows.map((row) => row.split('\t')[0]));
  assert.deepEqual(
    BINDINGS.map(({ action }) => action).filter((action) => !listed.has(action)),
    [],
  );
});
