import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compareInFile, sumRows, type FileStats } from '../../src/source/file-compare.ts';
import { FileRows, FileTree, findSorted, searchView } from '../../src/source/file-rows.ts';
import type { FileView } from '../../src/source/file-view.ts';
import { inTime } from '../../src/source/in-time.ts';
import { leftView } from '../../src/source/left.ts';
import type { Folds } from '../../src/source/source.ts';
import { parentsOf } from '../../src/source/file.ts';
import { money } from '../../src/text/money.ts';
import { parseQuery } from '../../src/text/query.ts';

// q ─ a ─┬─ b ─ c
//        └─ d
function rows(): FileRows {
  const all = new FileRows(5);
  const names = [
    ['q', -1],
    ['a', 0],
    ['b', 1],
    ['c', 2],
    ['d', 1],
  ] as const;
  all.add(
    0,
    names.map(([id, parent], at) => ({
      id,
      parent,
      type: 'message',
      role: at % 2 === 0 ? 'user' : 'assistant',
      preview: `Text of ${id}`,
      body: 0,
      timestamp: `2026-11-22T08:0${at}:00Z`,
      ...(at < 4 ? { onActivePath: true } : {}),
    })),
  );
  return all;
}

const VIEW: FileView = {
  hidden: 0,
  rows: [0, 1, 2, 3, 4],
  depth: [0, 1, 2, 3, 2],
  indent: [0, 0, 1, 1, 1],
  prefix: [0, 0, 1, 2, 3],
  prefixes: ['', '├─ ', '│  ', '└─ '],
};

const OPEN: Folds = { all: true, expand: [], each: [] };

function tree(view: FileView): FileTree {
  const query = { filter: 'default', query: undefined, folds: OPEN } as const;
  return new FileTree(query, VIEW, view, rows(), () => undefined, 3, { loaded: () => undefined });
}

test('rows get depth, guides and children from their view', () => {
  const row = tree(VIEW).row(1);
  assert.equal(row?.childCount, 2);
  assert.equal(row.isBranchPoint, true);
  assert.equal(row.parentId, 'q');
  assert.equal(tree(VIEW).row(2)?.prefix, '├─ ');
  assert.equal(tree(VIEW).row(3)?.isLeaf, true);
  assert.equal(tree(VIEW).row(5), undefined);
});

/** The rows in the form in which a terminal shows them. */
function drawn(of: FileTree): string[] {
  const lines = [];
  for (let at = 0; at < of.total; at++) {
    const row = of.row(at);
    lines.push(`${row?.prefix}${row?.folded ? row.preview : row?.id}`);
  }
  return lines;
}

/** Once, the page in a file folded no branches, since it has no daemon. */
test('a branch that was left is one row, which opens', async () => {
  const left = (leaf: number, folds: Partial<Folds>): FileTree => {
    const all = { all: false, expand: [], each: [], ...folds };
    const view = leftView(VIEW, leaf, rows(), all);
    const query = { filter: 'default', query: undefined, folds: all } as const;
    return new FileTree(query, VIEW, view, rows(), () => undefined, leaf, {
      loaded: () => undefined,
    });
  };
  assert.deepEqual(drawn(left(3, {})), ['q', 'a', '└─ 1 entry · Text of d', 'b', 'c']);
  assert.deepEqual(drawn(left(3, { expand: ['d'] })), ['q', 'a', '└─ d', 'b', 'c']);
  assert.deepEqual(left(3, { expand: ['d'] }).row(2)?.opened, { expand: ['d'] });
  // The conversation does not continue below the leaf.
  const several = '└─ 2 branches · 3 entries · Text of b · Text of d';
  assert.deepEqual(drawn(left(1, {})), ['q', 'a', several]);
  const each = ['├─ 2 entries · Text of b', '└─ 1 entry · Text of d'];
  assert.deepEqual(drawn(left(1, { each: ['b'] })), ['q', 'a', ...each]);
  const open = ['├─ b', '│  c', '└─ 1 entry · Text of d'];
  assert.deepEqual(drawn(left(1, { expand: ['c'] })), ['q', 'a', ...open]);
  assert.equal(await left(1, {}).indexOf('c'), 2);
  assert.equal(await left(3, {}).indexOf('c'), 4);
  assert.equal(await left(3, {}).indexOf('nothing'), -1);
});

/** With all branches open the page put the active path first, and other clients the oldest branch. */
test('rows without a fold are in the order of time', async () => {
  // q ─ a ─┬─ b ─ c
  //        ├─ d ─ e, the active path
  //        └─ f
  const names = ['q', 'a', 'd', 'e', 'b', 'c', 'f'];
  const parents = [-1, 0, 1, 2, 1, 4, 1];
  const minutes = [0, 1, 4, 5, 2, 3, 6];
  const all = new FileRows(names.length);
  all.add(
    0,
    names.map((id, at) => ({
      ...{ id, parent: parents[at] ?? -1, type: 'message', role: 'user', preview: id, body: 0 },
      timestamp: `2026-11-22T08:0${minutes[at]}:00Z`,
    })),
  );
  const view: FileView = {
    hidden: 2,
    rows: [0, 1, 2, 3, 4, 5, 6],
    depth: [0, 1, 2, 3, 2, 3, 2],
    indent: [0, 0, 1, 1, 1, 1, 1],
    prefix: [0, 0, 1, 2, 1, 2, 3],
    prefixes: ['', '├─ ', '│  ', '└─ '],
  };
  const made = (shown: FileView, leaf: number): FileTree => {
    const query = { filter: 'default', query: undefined, folds: OPEN } as const;
    return new FileTree(query, view, shown, all, () => undefined, leaf, {
      loaded: () => undefined,
    });
  };
  const ordered = made(inTime(view, 3, all), 3);
  assert.deepEqual(drawn(ordered), ['q', 'a', '├─ b', '│  c', '├─ d', '│  e', '└─ f']);
  assert.equal(ordered.hidden, 2);
  assert.equal(ordered.row(4)?.parentId, 'a');
  assert.equal(await ordered.indexOf('e'), 5);
  assert.equal(await ordered.indexOf('f'), 6);
  // Without a leaf the order of the file is that of time.
  assert.equal(inTime(view, -1, all), view);
  // The rows of a fork at the top are its roots.
  const top: FileView = { ...view, rows: [2, 4], depth: [0, 0], indent: [1, 1], prefix: [1, 3] };
  assert.deepEqual(drawn(made(inTime(top, 2, all), 2)), ['├─ b', '└─ d']);
});

test('a search finds rows by words and by pattern', () => {
  const find = (text: string): number[] => {
    const query = parseQuery(text);
    assert.ok(query);
    return searchView(VIEW, rows(), query, new Set([4])).rows;
  };
  assert.deepEqual(find('OF c'), [3, 4]);
  assert.deepEqual(find('/Text of [ab]/'), [1, 2, 4]);
});

test('branches are compared at their common ancestor', () => {
  const stats: FileStats = {
    total: {},
    usage: {
      rows: [1, 3, 4],
      input: [1, 2, 4],
      output: [1, 1, 1],
      cacheRead: [0, 0, 0],
      cacheWrite: [0, 0, 0],
      cost: [0.5, 0, 0],
      estimated: [null, 0.25, null],
    },
    files: {
      paths: ['x', 'y'],
      read: [
        [2, 0],
        [3, 1],
      ],
      modified: [[3, 0]],
    },
  };
  const compared = compareInFile(rows(), stats, 'c', 'd');
  assert.equal(compared.ancestorId, 'a');
  assert.deepEqual(compared.a.entryIds, ['b', 'c']);
  assert.deepEqual(compared.a.files, { readFiles: ['y'], modifiedFiles: ['x'] });
  assert.equal(compared.a.stats.tokens?.input, 2);
  const { costs: ofC } = compared.a.stats;
  assert.deepEqual(ofC, { recorded: null, estimated: 0.25, unknownAnswers: 0 });
  const { costs: ofD } = compared.b.stats;
  assert.deepEqual(ofD, { recorded: null, estimated: null, unknownAnswers: 1 });
  assert.equal(money(ofC), '~0.25');
  assert.equal(money(ofD), 'unknown');
  assert.equal(money({ recorded: 0.001, estimated: null, unknownAnswers: 2 }), '<0.01 + ?');
  assert.equal(money({ recorded: null, estimated: null, unknownAnswers: 0 }), '–');
  const sum = sumRows(rows(), stats, rows().path(3));
  assert.deepEqual(sum.messages, { user: 2, assistant: 2 });
  assert.equal(sum.activeMs, 180_000);
});

test('the depths of rows give their parents', () => {
  assert.deepEqual([...parentsOf([0, 1, 2, 3, 2, 0, 1])], [-1, 0, 1, 2, 1, -1, 5]);
  // These depths are from a damaged file.
  assert.deepEqual([...parentsOf([3, 5])], [-1, 0]);
});

test('a path of rows that name each other ends', () => {
  const loop = new FileRows(2);
  const row = (id: string, parent: number) => ({
    id,
    parent,
    type: 'message',
    preview: '',
    body: 0,
  });
  loop.add(0, [row('a', 1), row('b', 0)]);
  assert.ok(loop.path(0).length <= 3);
});

test('numbers are found in ascending arrays', () => {
  assert.equal(findSorted([1, 5, 9], 5), 1);
  assert.equal(findSorted([1, 5, 9], 6), -1);
  assert.equal(findSorted([], 6), -1);
});

// The page in a file has no daemon that names its branches.
test('a branch is named by its label, else by what was said first after the fork', () => {
  const all = new FileRows(10);
  const user = { type: 'message', role: 'user', body: 0 };
  const reply = { type: 'message', role: 'assistant', body: 0 };
  all.add(0, [
    { ...user, id: 'q', parent: -1, preview: 'Begin' },
    { ...reply, id: 'a', parent: 0, preview: 'Begun' },
    { ...user, id: 'x', parent: 1, preview: '/clear', style: 'dim' },
    { type: 'label', id: 'l', parent: 2, preview: 'a label', body: 0 },
    { ...user, id: 'b', parent: 3, preview: '[image] Go left' },
    { ...reply, id: 'c', parent: 4, preview: 'Done.' },
    { type: 'custom', id: 'n', parent: 5, preview: 'state', body: 0 },
    { ...user, id: 'd', parent: 1, preview: '[image]', onActivePath: true },
    { ...user, id: 'e', parent: 1, preview: 'Go right', label: 'the best' },
    { ...reply, id: 'f', parent: 1, preview: 'Left alone' },
  ]);
  assert.deepEqual(all.branches(), [
    { tipId: 'c', name: '[image] Go left', isActive: false },
    { tipId: 'd', name: '[image]', isActive: true },
    { tipId: 'e', name: 'the best', isActive: false, label: 'the best' },
    { tipId: 'f', name: 'Left alone', isActive: false },
  ]);
});
