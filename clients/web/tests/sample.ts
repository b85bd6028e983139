/** Writes sessions for tests as JSONL, in the format of the daemon (schema/session-file.md). */

import { readFileSync } from 'node:fs';

export interface Line {
  type: string;
  id: string;
  parentId: string | null;
  [member: string]: unknown;
}

/** Builds a session entry by entry. The times of entries are a minute apart. */
export class SessionWriter {
  readonly lines: Line[] = [];
  private minute = 0;
  private stored: string | undefined;

  constructor(
    readonly sessionId: string,
    private readonly cwd = '/home/ada/project',
  ) {}

  private time(): string {
    return new Date(Date.UTC(2026, 10, 22, 8, this.minute++)).toISOString();
  }

  add(id: string, parentId: string | null, type: string, members: object): string {
    this.lines.push({ type, id, parentId, timestamp: this.time(), ...members });
    return id;
  }

  message(id: string, parentId: string | null, message: object): string {
    return this.add(id, parentId, 'message', { message });
  }

  user(id: string, parentId: string | null, content: unknown): string {
    return this.message(id, parentId, { role: 'user', content });
  }

  assistant(id: string, parentId: string | null, content: unknown[], members: object = {}): string {
    const usage = {
      input: 1800,
      output: 240,
      cacheRead: 12_000,
      cacheWrite: 0,
      totalTokens: 14_040,
      cost: { input: 0.005, output: 0.004, cacheRead: 0.003, cacheWrite: 0, total: 0.012 },
    };
    const named = { provider: 'example', model: 'large', usage, stopReason: 'stop' };
    return this.message(id, parentId, { role: 'assistant', content, ...named, ...members });
  }

  result(
    id: string,
    parentId: string,
    call: string,
    name: string,
    text: string,
    isError = false,
  ): string {
    const content = [{ type: 'text', text }];
    return this.message(id, parentId, {
      role: 'toolResult',
      toolCallId: call,
      toolName: name,
      content,
      isError,
    });
  }

  /** Continues the session in an existing file. */
  static of(path: string): SessionWriter {
    const text = readFileSync(path, 'utf8');
    const { id } = JSON.parse(text.slice(0, text.indexOf('\n'))) as { id: string };
    const session = new SessionWriter(id);
    session.stored = text;
    return session;
  }

  jsonl(): string {
    if (this.stored !== undefined) return this.stored;
    const header = {
      type: 'session',
      version: 3,
      id: this.sessionId,
      timestamp: '2026-11-22T08:00:00.000Z',
      cwd: this.cwd,
    };
    return [header, ...this.lines].map((line) => `${JSON.stringify(line)}\n`).join('');
  }
}

export function text(value: string): object {
  return { type: 'text', text: value };
}

export function call(id: string, name: string, args: object): object {
  return { type: 'toolCall', id, name, arguments: args };
}

const FIRST_ANSWER = `The build fails in \`src/main.rs\`: the crate \`serde\` is used and not imported. There are two ways to go on:

1. **Clear the cache** and build again. A stale artifact would explain why it worked *yesterday*.
2. **Add the import.** It is one line:

\`\`\`rust
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
struct Config {
    /// Where sessions are kept.
    directory: PathBuf,
    limit: Option<u64>, // bytes
}
\`\`\`

| way | time | risk |
|---|---:|---|
| clear | 4 min | none |
| import | 1 min | none |

See [the book](https://doc.rust-lang.org/book/ "The Rust book") for more.`;

/** A picture of 32 × 20 pixels. */
const PICTURE =
  'iVBORw0KGgoAAAANSUhEUgAAACAAAAAUCAIAAABj86gYAAAAOElEQVR42mNkYPjPQEvAQmMLRi0YtWDUglELRi0YtWDUglELRi0YtWDUglELRi0YtWDUglELRi0AAKsgAScm4bS3AAAAAElFTkSuQmCC';

/** A conversation with branches, tool calls, an edit, thinking, an image, a summary and a compaction. */
export function tour(): SessionWriter {
  const s = new SessionWriter('tour');
  s.add('n1', null, 'session_info', { name: 'Why does the build fail?' });
  s.user(
    'q1',
    'n1',
    'Why does the build fail?\n\n```\nerror[E0432]: unresolved import `serde`\n```',
  );
  s.assistant(
    'a1',
    'q1',
    [
      {
        type: 'thinking',
        thinking:
          'The user sees **E0432**. Either the dependency is missing, or the cache is stale. I look at the manifest first.',
      },
      text('I look at the manifest and at the source.'),
      call('c1', 'read', { path: 'Cargo.toml' }),
      call('c2', 'bash', { command: 'cargo build 2>&1 | tail -n 20' }),
    ],
    { stopReason: 'toolUse' },
  );
  s.result(
    'r1',
    'a1',
    'c1',
    'read',
    '[package]\nname = "tour"\nversion = "0.1.0"\n\n[dependencies]\nserde = { version = "1", features = ["derive"] }\n',
  );
  s.result(
    'r2',
    'r1',
    'c2',
    'bash',
    'error[E0432]: unresolved import `serde`\n --> src/main.rs:1:5\n  |\n1 | use serde::Deserialize;\n  |     ^^^^^ use of undeclared crate or module\n\nerror: could not compile `tour`',
    true,
  );
  s.assistant('a2', 'r2', [text(FIRST_ANSWER)]);
  s.add('l1', 'a2', 'label', { targetId: 'a2', label: 'two ways' });
  s.user('q2', 'l1', 'Clear the cache.');
  s.assistant(
    'a3',
    'q2',
    [text('I clear it now.'), call('c3', 'bash', { command: 'rm -r target && cargo build' })],
    { stopReason: 'toolUse' },
  );
  s.result('r3', 'a3', 'c3', 'bash', 'error[E0432]: unresolved import `serde`', true);
  s.assistant('a4', 'r3', [text('The cache is **not** the cause: the error is the same.')]);
  s.user('q3', 'a4', 'Then look at the toolchain.');
  s.assistant('a5', 'q3', [text('It is `1.90`, which is recent enough.')]);
  secondHalf(s);
  return s;
}

/** Goes back to the first answer, with a summary, and continues to the end. */
function secondHalf(s: SessionWriter): void {
  s.add('s1', 'a2', 'branch_summary', {
    fromId: 'a5',
    summary:
      'This is a summary of a branch that was explored before the conversation returned here.\n\n## Goal\nMake the build work.\n\n## Findings\n- Clearing the cache did not help.\n- The toolchain is recent enough.',
    details: { readFiles: ['Cargo.toml'], modifiedFiles: [] },
  });
  s.user('q4', 's1', [
    text('Add the import, please. It should look like this:'),
    { type: 'image', mimeType: 'image/png', data: PICTURE },
  ]);
  s.assistant(
    'a6',
    'q4',
    [
      text('I add it.'),
      call('c4', 'edit', {
        path: 'src/main.rs',
        oldText: 'use std::path::PathBuf;\n',
        newText: 'use serde::{Deserialize, Serialize};\nuse std::path::PathBuf;\n',
      }),
      call('c5', 'bash', { command: 'cargo build' }),
    ],
    { stopReason: 'toolUse' },
  );
  s.result('r4', 'a6', 'c4', 'edit', 'Edited src/main.rs');
  s.result(
    'r5',
    'r4',
    'c5',
    'bash',
    '   Compiling tour v0.1.0\n    Finished `dev` profile in 1.42s',
  );
  s.assistant('a7', 'r5', [
    text('Done: it builds.\n\n> A missing import, nothing else.\n\n- [x] build\n- [ ] tests'),
  ]);
  s.message('b1', 'a7', {
    role: 'bashExecution',
    command: 'git status --short',
    output: ' M src/main.rs\n',
    exitCode: 0,
  });
  s.add('k1', 'b1', 'compaction', {
    summary: '## Goal\nMake it build.\n\n## Progress\nThe import was missing; it is added.',
    firstKeptEntryId: 'q4',
    tokensBefore: 12_400,
    details: { readFiles: ['Cargo.toml'], modifiedFiles: ['src/main.rs'] },
  });
  s.user('q5', 'k1', 'Now run the tests, and tell me when they pass.');
  s.assistant('a8', 'q5', [call('c6', 'bash', { command: 'cargo test' })], {
    stopReason: 'toolUse',
  });
  s.result(
    'r6',
    'a8',
    'c6',
    'bash',
    'running 3 tests\ntest parses_a_config ... ok\ntest limits_are_kept ... ok\ntest a_missing_file_is_an_error ... ok\n\ntest result: ok. 3 passed; 0 failed',
  );
  s.add('m1', 'r6', 'custom_message', {
    customType: 'ci',
    content: 'CI: 3 tests passed',
    display: true,
  });
  s.assistant('a9', 'm1', [
    text(
      'All three tests pass. The whole change is one line:\n\n```diff\n+use serde::{Deserialize, Serialize};\n```\n\nShall I commit it?',
    ),
  ]);
  s.user('q6', 'a2', 'What about a workspace?');
  s.assistant('a10', 'q6', [text('A workspace would share the lock file. It is not needed here.')]);
  // The leaf record of a move comes last.
  s.add('x1', 'a9', 'label', { targetId: 'a9', label: 'green' });
}

/** A session of many entries: long chains with branches, like those of long work. */
export function large(count: number): SessionWriter {
  const s = new SessionWriter(`large-${count}`);
  const words =
    'the build fails because a stale cache hides one missing import of the crate that every test needs'.split(
      ' ',
    );
  let state = 42;
  const random = (below: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return state % below;
  };
  const sentence = (length: number): string =>
    Array.from({ length }, () => words[random(words.length)]).join(' ');
  let parent: string | null = null;
  const joints: string[] = [];
  for (let at = 0; at < count; at++) {
    const id = `e${at}`;
    if (at % 997 === 996 && joints.length > 3)
      parent = joints[joints.length - 1 - random(3)] ?? parent;
    const kind = at % 4;
    if (kind === 0) parent = s.user(id, parent, `Question ${at}: ${sentence(12)}?`);
    else if (kind === 1)
      parent = s.assistant(id, parent, [
        text(`Step ${at}. ${sentence(20)}.`),
        call(`c${at}`, 'bash', { command: `make ${sentence(3)}` }),
      ]);
    else if (kind === 2 && parent !== null)
      parent = s.result(id, parent, `c${at - 1}`, 'bash', sentence(160));
    else
      parent = s.assistant(id, parent, [
        text(`${sentence(60)}.\n\n- ${sentence(8)}\n- ${sentence(9)}`),
      ]);
    if (at % 150 === 0) joints.push(id);
  }
  return s;
}

/** A session of 5,000 entries with 27 moves back. Each move leaves one branch of 90 entries. */
export function rounds(): SessionWriter {
  const s = new SessionWriter('rounds');
  let count = 0;
  const go = (above: string | null, length: number, round: number): string | null => {
    for (const end = count + length; count < end; count++) {
      above =
        count % 2 === 0
          ? s.user(`e${count}`, above, `Question ${count} of round ${round}, in a few words more`)
          : s.assistant(`e${count}`, above, [text('An answer with some words in it.')]);
    }
    return above;
  };
  let fork: string | null = null;
  for (let round = 0; round < 27; round++) {
    go(fork, 90, round);
    fork = go(fork, 90, round);
  }
  go(fork, 5000 - count, 27);
  return s;
}
