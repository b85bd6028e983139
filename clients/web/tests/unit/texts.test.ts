import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { formatRoute, parseRoute } from '../../src/model/route.ts';
import { questionOf } from '../../src/model/questions.ts';
import { age, clock, duration } from '../../src/text/time.ts';
import { bytes, plural, shorten, visible } from '../../src/text/visible.ts';
import { cellsOf, drawnOf, mostCells } from '../../src/view/guides.tsx';
import { GUIDE } from '../../src/view/sizes.ts';
import { OWN, partsOf } from '../../src/view/command.tsx';
import { diffCounts } from '../../src/view/parts.tsx';

test('a route names an entry whatever is in its id', () => {
  for (const entry of ['a1', '<&=#"', 'ü %', '__proto__']) {
    assert.equal(parseRoute(formatRoute({ entry })).entry, entry);
  }
  assert.deepEqual(parseRoute('#t=ab&s=x%2Fy&e=z'), { token: 'ab', session: 'x/y', entry: 'z' });
  assert.deepEqual(parseRoute('#e=%E0%A4%A'), {});
  assert.deepEqual(parseRoute('#__proto__=x&constructor=y'), {});
});

test('control characters are replaced in lines', () => {
  assert.equal(visible('a\u{E0041}b\uFFF9c\u206Ad\u2028e'), 'a\ufffdb\ufffdc\ufffdd e');
  assert.equal(visible('a\u202Eb\u0000c\nd'), 'a\ufffdb\ufffdc d');
  assert.equal(visible('漢字 ok'), '漢字 ok');
});

test('texts are cut between characters', () => {
  assert.equal(shorten('👩👩👩👩', 3), '👩👩…');
  assert.equal(shorten('abc', 3), 'abc');
  assert.equal(plural(1, 'hit'), '1 hit');
  assert.equal(plural(1200, 'hit'), '1,200 hits');
  assert.equal(bytes(12_400), '12 kB');
});

test('times may be anything', () => {
  assert.equal(clock('no time'), '');
  assert.equal(clock(undefined), '');
  assert.equal(age('2026-11-22T08:00:00Z', Date.parse('2026-11-22T11:30:00Z')), '3h');
  assert.equal(duration(59_400), '59 s');
  assert.equal(duration(2 * 3600_000 + 5 * 60_000), '2 h 05 min');
});

test('a time has its date where the day differs from that of the row before', () => {
  const [late, next, later] = [
    new Date(2026, 10, 22, 23, 59),
    new Date(2026, 10, 23, 0, 5),
    new Date(2026, 10, 23, 9, 30),
  ].map((time) => time.toISOString());
  assert.equal(clock(late), '2026-11-22 23:59');
  assert.equal(clock(next, late), '2026-11-23 00:05');
  assert.equal(clock(later, next), '09:30');
  assert.equal(clock(later, 'no time'), '2026-11-23 09:30');
});

test('the names of the own commands are reserved', () => {
  const path = new URL('../../../../schema/commands.txt', import.meta.url);
  const reserved = readFileSync(path, 'utf8').split('\n');
  for (const { name } of OWN) assert.ok(reserved.includes(name), name);
});

test('guides are cut from the left, and the number of missing steps counts as guides', () => {
  assert.deepEqual(cellsOf('│  ├─ '), ['down', 'fork']);
  assert.deepEqual(cellsOf('…5 │  ├─ '), ['down', 'fork'], 'the daemon has cut it');
  assert.deepEqual(cellsOf('…105  │  ├─ '), ['down', 'fork']);
  assert.deepEqual(cellsOf(''), []);
  const [whole, deep] = ['│  │     ├─ ', '│  '.repeat(20) + '└─ '];
  assert.deepEqual(drawnOf(whole, 4, 4), { cells: cellsOf(whole), missing: 0, numbered: 0 });
  assert.deepEqual(drawnOf(whole, 4, 3), { cells: ['fork'], missing: 3, numbered: 2 });
  assert.deepEqual(drawnOf(deep, 21, 4), { cells: ['down', 'end'], missing: 19, numbered: 2 });
  assert.deepEqual(drawnOf(deep, 119, 4), { cells: ['end'], missing: 118, numbered: 3 });
  assert.deepEqual(drawnOf(deep, 1119, 3), { cells: ['end'], missing: 1118, numbered: 3 });
});

test('guides have 12 columns of 80, and room for one step in the narrowest pane', () => {
  for (const width of [280, 356, 560, 1400]) {
    const drawn = drawnOf('│  '.repeat(40) + '└─ ', 99, mostCells(width));
    const pixels = (drawn.cells.length + drawn.numbered) * GUIDE;
    assert.ok(pixels <= (width * 12) / 80, `${pixels} of ${width}`);
    assert.equal(drawn.cells.length + drawn.missing, 99);
  }
  assert.equal(mostCells(176), 3);
});

test('a command has a name and the rest', () => {
  assert.deepEqual(partsOf(' /todo  Ship it '), { name: 'todo', args: 'Ship it' });
  assert.deepEqual(partsOf('todo'), { name: 'todo', args: '' });
});

test('lines of a diff are counted by their signs', () => {
  assert.deepEqual(diffCounts(' a\n+b\n-c\n-d\n@@'), { added: 1, removed: 2 });
});

test('a question that waits for nobody is none', () => {
  const preparation = { targetId: 'a', abandonedCount: 2, userWantsSummary: true };
  const params = { eventId: 'e', sessionId: 's', timeoutMs: 30_000, preparation };
  const asked = {
    kind: 'tree',
    eventId: 'e',
    sessionId: 's',
    targetId: 'a',
    count: 2,
    summary: true,
  };
  assert.deepEqual(questionOf('session_before_tree', params), asked);
  assert.equal(questionOf('session_before_tree', { ...params, timeoutMs: 0 }), undefined);
  assert.equal(questionOf('session_tree', params), undefined);
});
