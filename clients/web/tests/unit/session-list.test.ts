import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { LiveState } from '../../src/model/live-state.ts';
import { groups, SessionList, SOURCES, type ListFilter } from '../../src/model/session-list.ts';
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

/** The filter once lacked Qwen Code, ChatGPT and Claude.ai. */
test('the filter has every tool from which sessions are imported', () => {
  const schema = JSON.parse(readFileSync('../../schema/treelined.v1.json', 'utf8')) as {
    $defs: { ImportFrom: { enum: string[] } };
  };
  const names = schema.$defs.ImportFrom.enum.filter((name) => name !== 'auto');
  assert.deepEqual(SOURCES.map(({ tool }) => tool).sort(), names.sort());
});

test('sessions are filtered by date', () => {
  assert.deepEqual(grouped({ days: 7 }), [['', 'abd']]);
});

/** Once, the line of the same number was selected, and Enter opened another session. */
test('the selected line stays on its session while others move to the top', async () => {
  let sessions = rows;
  const live = {
    app: { changed: () => undefined, failed: (error: unknown) => assert.fail(String(error)) },
    call: (method: string) => Promise.resolve(method === 'list_sessions' ? { sessions } : {}),
  };
  globalThis.document = { querySelector: () => null } as unknown as Document;
  const list = new SessionList(live as unknown as LiveState);
  const selected = (): string | undefined => list.lines[list.selected]?.sessionId;
  await list.load();
  assert.equal(selected(), 'a');
  list.move(1);
  assert.equal(selected(), 'b');
  sessions = [row('new', '/trip', '2026-11-24T11:59:00Z'), ...rows];
  await list.load();
  assert.deepEqual([selected(), list.selected], ['b', 2]);
  list.move(1);
  assert.equal(selected(), 'c');
  // The session is deleted. The line that is now there is selected.
  sessions = sessions.filter(({ sessionId }) => sessionId !== 'c');
  await list.load();
  assert.equal(selected(), 'd');
  list.setFilter({ days: 7 });
  assert.equal(selected(), 'new');
});
