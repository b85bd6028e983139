// Tests of continuing in another agent.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { AGENTS, commandLine, handedOver } from '../src/core/continuation.js';
import { packageDir } from './fixture.js';

/** Each client once had different names for the same agents. */
test('the agents are those of the table that all clients share', () => {
  const table = readFileSync(new URL('../../schema/agents.tsv', packageDir), 'utf8');
  const rows = table.split('\n').filter((row) => row !== '' && !row.startsWith('#'));
  assert.deepEqual(
    AGENTS,
    rows.map((row) => row.split('\t').slice(0, 2)),
  );
});

test('what is lost and what is not installed is said', () => {
  const result = {
    messages: 2,
    tokens: 1,
    losses: [{ kind: 'thoughts' as const, count: 1, text: '1 thought left out' }],
    missing: ['codex'],
  };
  assert.equal(
    handedOver(result),
    '2 messages, about 1 token; lost: 1 thought left out; codex is not installed here',
  );
});

test('the command has the options of the daemon, and a shell reads its words as they are', () => {
  const start = { command: '/a b/treelined', sessionDir: "/it's", summarizer: 'outline', args: [] };
  const target = {
    path: '/s/x.jsonl',
    entryId: '-a$(b)',
    tool: 'codex' as const,
    options: ['--learned'],
  };
  assert.equal(
    commandLine(start, target),
    "'/a b/treelined' --session-dir '/it'\\''s' --summarizer outline continue --in codex --learned -- /s/x.jsonl '-a$(b)'",
  );
  // Tags and marks of interlinear annotations were once typed into the terminal.
  for (const char of '\n\u001b\u061c\u200f\u2028\u202e\u206a\ufff9\u{e0041}') {
    const path = `/a${char}rm b`;
    assert.throws(
      () => commandLine(start, { ...target, path }),
      /control character/,
      JSON.stringify(char),
    );
  }
});
