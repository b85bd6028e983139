import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compareInFile, sumRows, type FileStats } from '../../src/source/file-compare.ts';
import {
  FileRows,
  FileTree,
  findSorted,
  foldView,
  searchView,
  type FileView,
} from '../../src/source/file-rows.ts';
import { parentsOf } from '../../src/source/file.ts';
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

function tree(view: FileView): FileTree {
  const query = { filter: 'default', query: undefined, folded: new Set<string>() } as const;
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

test('a folded row keeps its children, which have no rows', () => {
  const folded = foldView(VIEW, rows(), new Set(['b']));
  assert.deepEqual(folded.rows, [0, 1, 2, 4]);
  assert.equal(tree(folded).row(2)?.childCount, 1);
  assert.deepEqual(foldView(VIEW, rows(), new Set(['q'])).rows, [0]);
});

test('an entry without a row is found at its nearest ancestor', async () => {
  const folded = foldView(VIEW, rows(), new Set(['b']));
  assert.equal(await tree(folded).indexOf('c'), 2);
  assert.equal(await tree(folded).indexOf('nothing'), -1);
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
      cost: [0.5, 0.25, 1],
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
  assert.equal(compared.b.stats.cost, 1);
  const sum = sumRows(rows(), stats, rows().path(3));
  assert.deepEqual(sum.messages, { user: 2, assistant: 2 });
  assert.equal(sum.activeMs, 180_000);
});

test('the depths of rows give their parents', () => {
  assert.deepEqual([...parentsOf([0, 1, 2, 3, 2, 0, 1])], [-1, 0, 1, 2, 1, -1, 5]);
  // Depths of a damaged file.
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

// The page of a file has no daemon that names its branches.
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
