import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { AGENTS, commandLine } from '../../src/model/handoff.ts';

test('the agents are those of the table that all clients share', () => {
  const table = readFileSync(new URL('../../../../schema/agents.tsv', import.meta.url), 'utf8');
  const rows = table.split('\n').filter((row) => row !== '' && !row.startsWith('#'));
  const shared = rows.map((row) => row.split('\t').slice(0, 2));
  assert.deepEqual(
    AGENTS.map(({ tool, name }) => [tool, name]),
    shared,
  );
});

test('a command is as a shell reads it', () => {
  const words = ['treelined', 'continue', "it's; rm *", 'a-1', ''];
  assert.equal(commandLine(words), "treelined continue 'it'\\''s; rm *' a-1 ''");
});
