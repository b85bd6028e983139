// The session "A tour", written by another program while VS Code runs.

import { connect } from 'treelined';

const text = (value) => [{ type: 'text', text: value }];

/** Starts a daemon of another program for the same session directory. */
export async function otherProgram(editor, options = {}) {
  return connect({
    command: process.env.TREELINED_BIN ?? 'treelined',
    sessionDir: editor.sessionDir,
    summarizer: 'outline',
    cwd: editor.folder,
    ...options,
  });
}

export async function writeTour(client, cwd) {
  const { session } = await client.createSession({
    sessionId: 'tour',
    name: 'A tour',
    cwd,
    write: 'now',
  });
  const { sessionId } = session;
  const say = (entryId, role, content, more = {}) =>
    client.appendMessage({ sessionId, entryId, message: { role, content, ...more } });
  await say('u1', 'user', text('Why does the build fail?'));
  await say('a1', 'assistant', text('A stale cache, or a missing import.'));
  await say('u2', 'user', text('Clear the cache.'));
  const call = {
    type: 'toolCall',
    id: 't1',
    name: 'bash',
    arguments: { command: 'make clean all' },
  };
  await say('c1', 'assistant', [...text('I clean it.'), call]);
  await say('r1', 'toolResult', text('make: *** [all] Error 1'), {
    toolCallId: 't1',
    toolName: 'bash',
    isError: true,
  });
  await say('a2', 'assistant', text('Cleared. It still fails: the linker does not find `libfoo`.'));
  await client.navigateTree({ sessionId, targetId: 'a1', summarize: true, label: 'not the cache' });
  await say('u3', 'user', text('Add the import.'));
  await say(
    'a3',
    'assistant',
    text('Added `import foo`. The build passes, and all 213 tests too.'),
  );
  return sessionId;
}
