import assert from 'node:assert/strict';
import { test } from 'node:test';
import { groups, type ListFilter } from '../../src/model/session-list.ts';
import type { SessionRow } from '../../src/wire.ts';

const NOW = Date.parse('2026-11-24T12:00:00Z');

const row = (sessionId: string, cwd: string, modified: string, source?: string): SessionRow => ({
  sessionId,
  cwd,
  modified,
  messageCount: 2,
  firstMessage: '',
  ...(source === undefined ? {} : { source }),
});

const rows = [
  row('a', '/project', '2026-11-24T11:00:00Z', 'codex'),
  row('b', '/trip', '2026-11-22T11:00:00Z'),
  row('c', '/project', '2026-01-01T11:00:00Z', 'new-tool'),
  row('d', '', 'yesterday', 'codex'),
];

function grouped(change: Partial<ListFilter>): [string, string][] {
  const all = { tool: '', project: '', days: Infinity, archived: false } as const;
  const filter: ListFilter = { ...all, grouping: 'none', ...change };
  return [...groups(rows, filter, NOW)].map(([name, found]) => [
    name,
    found.map(({ sessionId }) => sessionId).join(''),
  ]);
}

// The sessions of a hundred projects and tools were once one list without groups.
test('sessions are grouped by project, tool and date', () => {
  assert.deepEqual(grouped({}), [['', 'abcd']]);
  assert.deepEqual(grouped({ grouping: 'project' }), [
    ['/project', 'ac'],
    ['/trip', 'b'],
    ['No directory', 'd'],
  ]);
  assert.deepEqual(grouped({ grouping: 'tool' }), [
    ['Codex', 'ad'],
    ['treelined', 'b'],
    ['new-tool', 'c'],
  ]);
  // A session with an invalid time is shown too.
  assert.deepEqual(grouped({ grouping: 'date' }), [
    ['Last 24 hours', 'ad'],
    ['Last 7 days', 'b'],
    ['Older', 'c'],
  ]);
});

test('sessions are filtered by date', () => {
  assert.deepEqual(grouped({ days: 7 }), [['', 'abd']]);
});
