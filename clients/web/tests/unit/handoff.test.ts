import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { LiveState } from '../../src/model/live-state.ts';
import { AGENTS, commandLine, Handoff, isSafe } from '../../src/model/handoff.ts';

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
  assert.equal(commandLine(['=ls', 'a=b']), "'=ls' a=b");
});

// Marks of direction, separators of lines and tags were once offered for copying.
test('a command with control characters is not safe', () => {
  assert.ok(isSafe(["ä 漢字 'x'", '']));
  const controls = '\0\n\r\t\u001b\u007f\u009b\u061c\u200f\u2028\u202e\u2066\u206a\ufff9\u{e0041}';
  for (const char of controls) {
    assert.ok(!isSafe(['a', `b${char}`]), JSON.stringify(char));
  }
});

function handoff(path: string | undefined, entryId: string): Handoff {
  const live = {
    app: { changed: () => undefined, route: {} },
    source: { session: path === undefined ? {} : { path } },
    sessionId: 'tour',
    call: () => new Promise(() => undefined),
  };
  return new Handoff(live as unknown as LiveState, entryId);
}

test('a command names the file, behind its options', () => {
  const made = handoff('/s/2026_tour.jsonl', '-a');
  made.choose({ tool: 'codex', learned: true });
  const expected = 'treelined continue --in codex --learned -- /s/2026_tour.jsonl -a';
  assert.equal(made.command, expected);
  assert.equal(handoff(undefined, 'b').command, 'treelined continue --in claude-code -- tour b');
  for (const char of ['\u001b[201~\r', '\u202e', '\u2028', '\u200f', '\u{e0041}']) {
    assert.equal(handoff(`/s/a${char}.jsonl`, 'b').command, undefined, JSON.stringify(char));
  }
});

test('a text has no summary of its earlier turns', () => {
  const made = handoff(undefined, 'a');
  made.choose({ size: 'compacted' });
  assert.equal(made.size, 'compacted');
  made.choose({ tool: 'text' });
  assert.equal(made.size, 'limited');
});
