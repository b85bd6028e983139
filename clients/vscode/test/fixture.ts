// Functions that the tests share: for the daemon, folders, connections, and a conversation.

import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { promisify } from 'node:util';
import { type Client, type ConnectOptions, connect } from 'treelined';
import { Connection, type Host, type Start } from '../src/core/connection.js';
import { Questions } from '../src/core/questions.js';
import { Session } from '../src/core/session.js';
import { type Item, Tree } from '../src/core/tree.js';

/** The program of the daemon: TREELINED_BIN, or the one on the PATH. */
export const command = process.env.TREELINED_BIN ?? 'treelined';

/** The folder of the package, relative to build/test/. */
export const packageDir = new URL('../../', import.meta.url);

/** Makes a folder that is removed after the test. */
export async function folder(t: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'treelined-'));
  t.after(() => rm(path, { recursive: true, force: true, maxRetries: 5 }));
  return path;
}

/** Makes the connection of a window. It ends after the test. */
export function connection(t: TestContext, start: Start, host: Partial<Host> = {}): Connection {
  const made = new Connection({
    isTrusted: () => true,
    start: () => ({ command, ...start }),
    version: '0.1.0',
    log: () => {},
    ask: async () => undefined,
    ...host,
  });
  t.after(() => made.dispose());
  return made;
}

/** Starts a connection with its own session directory. */
export async function window(t: TestContext, host: Partial<Host> = {}): Promise<Connection> {
  return connection(t, { sessionDir: await folder(t), summarizer: 'outline' }, host);
}

export interface Shared {
  at: Connection;
  questions: Questions;
  /** A client for another program, at the same daemon. */
  program: Client;
}

/** Makes a window and another program, `guard`, with `options`, on one daemon. */
export async function shared(t: TestContext, options: ConnectOptions = {}): Promise<Shared> {
  const sessionDir = await mkdtemp(join(tmpdir(), 'treelined-'));
  const place = { sessionDir, socket: join(sessionDir, 'daemon.sock') };
  const open: { at?: Connection; program?: Client } = {};
  // One hook does both in order: the daemon is stopped by its socket in the folder, and otherwise a window would
  // start it again.
  t.after(async () => {
    await open.program?.close();
    await open.at?.dispose();
    await promisify(execFile)(command, ['stop', '--socket', place.socket]).catch(() => {});
    await rm(sessionDir, { recursive: true, force: true, maxRetries: 5 });
  });
  const questions = new Questions();
  const at = connection(t, place, {
    ask: (question, signal, extend) => questions.ask(question, signal, extend),
  });
  open.at = at;
  await at.client();
  const program = await connect({ command, ...place, clientInfo: { name: 'guard' }, ...options });
  open.program = program;
  return { at, questions, program };
}

type Blocks = Record<string, unknown>[];

export async function say(
  session: Session,
  entryId: string,
  role: string,
  content: string | Blocks,
  more: object = {},
): Promise<void> {
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
  const message = { role, content: blocks, ...more } as never;
  await session.call('append_message', { entryId, message });
}

/** Appends the messages m0, m1, … at the leaf. */
export async function chain(session: Session, length: number, from = 0): Promise<void> {
  const entries = Array.from({ length }, (_, n) => ({
    type: 'message',
    id: `m${from + n}`,
    message: { role: 'user', content: `message ${from + n}` },
  }));
  await session.call('append_entries', { entries: entries as never });
}

/**
 * Makes the session "A tour": u1 → a1, then the branch u2 → c1 → r1 → a2, which was left with a summary. u3 and a3
 * follow the summary.
 */
export async function tour(at: Connection, cwd = '/tmp'): Promise<Session> {
  const session = await Session.create(at, { name: 'A tour', cwd });
  const call = {
    type: 'toolCall',
    id: 't1',
    name: 'bash',
    arguments: { command: 'make clean all' },
  };
  await say(session, 'u1', 'user', 'Why does the build fail?');
  await say(session, 'a1', 'assistant', [
    { type: 'text', text: 'A stale cache, or a missing import.' },
  ]);
  await say(session, 'u2', 'user', 'Clear the cache.');
  await say(session, 'c1', 'assistant', [{ type: 'text', text: 'I clean it.' }, call]);
  await say(session, 'r1', 'toolResult', [{ type: 'text', text: 'make: *** [all] Error 1' }], {
    toolCallId: 't1',
    toolName: 'bash',
    isError: true,
  });
  await say(session, 'a2', 'assistant', [
    { type: 'text', text: 'Cleared. It still fails: the linker does not find `libfoo`.' },
  ]);
  await session.call('navigate_tree', { targetId: 'a1', summarize: true, label: 'not the cache' });
  await say(session, 'u3', 'user', 'Add the import.');
  await say(session, 'a3', 'assistant', [
    { type: 'text', text: 'Added `import foo`. The build passes, and all 213 tests too.' },
  ]);
  return session;
}

export function treeOf(session: Session, pageSize = 50): Tree {
  return new Tree(session, { filter: 'default', query: '', pageSize });
}

/** Draws all items as lines, indented by their depth. Folded branches begin with `+`. */
export async function draw(tree: Tree, parent?: Item, indent = ''): Promise<string[]> {
  const lines: string[] = [];
  for (const item of await tree.children(parent)) {
    if (item.kind === 'more') {
      lines.push(`${indent}… ${item.text}`);
      continue;
    }
    const id = /^[0-9a-f]{8}$/.test(item.row.id) ? item.row.type : item.row.id;
    const text = item.row.folded ? `+ ${item.row.preview}` : id;
    lines.push(`${indent}${text}${item.row.isLeaf ? ' ←' : ''}`);
    if (item.hasChildren) lines.push(...(await draw(tree, item, `${indent}  `)));
  }
  return lines;
}

/** Waits until `isTrue` holds, for at most a minute: the machine may be busy. */
export async function until(isTrue: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const end = Date.now() + 60_000;
  while (!(await isTrue())) {
    if (Date.now() > end) throw new Error(`waited in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
