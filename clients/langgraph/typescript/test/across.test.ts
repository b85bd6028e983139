// Threads that the Python half has written, and the other way round.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';

import type { BaseMessage } from '@langchain/core/messages';

import { TreelinedSaver } from '../src/index.js';
import { config, folder, say, start, stepOf, talk } from './fixture.js';

const half = new URL('../../../', import.meta.url);
const python = process.env.PYTHON_OF_LANGGRAPH ?? fileURLToPath(new URL('.venv/bin/python', half));
const script = fileURLToPath(new URL('typescript/test/across.py', half));

/** Says a text in Python, after the newest checkpoint with a step, and returns the checkpoints of the thread. */
function inPython(sessionDir: string, thread: string, ...rest: [text?: string, step?: string]) {
  const args = [script, sessionDir, thread, ...(rest as string[])];
  return JSON.parse(execFileSync(python, args, { encoding: 'utf8' })) as unknown[];
}

/** Returns the checkpoints of a thread as the script does. */
async function inJavaScript(saver: TreelinedSaver, thread: string): Promise<unknown[]> {
  const tuples: unknown[] = [];
  for await (const tuple of saver.list(config(thread))) {
    const { configurable } = tuple.config;
    const parent = tuple.parentConfig?.configurable ?? null;
    const { checkpoint, metadata, pendingWrites } = tuple;
    const step = metadata?.step;
    tuples.push({ config: configurable, parent, checkpoint, step, writes: pendingWrites });
  }
  return plain(tuples) as unknown[];
}

function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  const members = 'lc_kwargs' in value ? ofMessage(value as unknown as BaseMessage) : value;
  return Object.fromEntries(
    Object.entries(members).flatMap(([name, member]) =>
      member === undefined ? [] : [[name, plain(member)]],
    ),
  );
}

function ofMessage(message: BaseMessage): object {
  const names = ['type', 'content', 'id', 'name', 'tool_calls', 'usage_metadata', 'artifact'];
  const members = names.map((name) => [
    name,
    (message as unknown as Record<string, unknown>)[name],
  ]);
  return Object.fromEntries(
    members.filter(([, member]) => !(Array.isArray(member) && member.length === 0)),
  ) as object;
}

test('both languages read and go on with a thread of either, and branch in it', async (t) => {
  for (const thread of ['trip', 'eine Reise']) {
    const sessionDir = await folder(t);
    const client = await start(t, sessionDir);
    const saver = new TreelinedSaver({ client });
    const first = inPython(sessionDir, thread, 'one');
    assert.equal(first.length, 3);
    assert.deepEqual(await inJavaScript(saver, thread), first);

    await say(talk(saver), config(thread), 'two');
    await say(talk(saver), await stepOf(talk(saver), config(thread), 1), 'otherwise');
    const second = inPython(sessionDir, thread);
    assert.equal(second.length, 9);
    assert.deepEqual(await inJavaScript(saver, thread), second);

    const third = inPython(sessionDir, thread, 'again', '1');
    assert.equal(third.length, 12);
    assert.deepEqual(await inJavaScript(saver, thread), third);

    const session = await client.listSessions({});
    const sessionId = session.sessions[0]?.sessionId ?? '';
    const { branches } = await client.listBranches({ sessionId });
    assert.equal(branches.length, 3);
    const { entries } = await client.getEntries({ sessionId });
    const texts = entries.map((entry) => JSON.stringify('message' in entry ? entry.message : null));
    assert.equal(texts.filter((text) => text.includes('"one"')).length, 1);
  }
});
