// Functions that the tests share: for the daemon, folders, clients, and a conversation.

import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { promisify } from 'node:util';
import { type Client, type ConnectOptions, connect } from 'treelined';

/** The program of the daemon: TREELINED_BIN, or the one on the PATH. */
export const command = process.env.TREELINED_BIN ?? 'treelined';

/** The folder of the package, relative to build/test/. */
export const packageDir = new URL('../../', import.meta.url);

/** Makes a folder that is removed after the test. */
export async function folder(t: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'treelined-'));
  t.after(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** Returns the options for clients of one shared daemon. The daemon ends after the test. */
export async function shared(t: TestContext): Promise<{ sessionDir: string; socket: string }> {
  const dir = await folder(t);
  const socket = join(dir, 'daemon.sock');
  // This fails if no client has started the daemon.
  t.after(() => promisify(execFile)(command, ['stop', '--socket', socket]).catch(() => {}));
  return { sessionDir: join(dir, 'sessions'), socket };
}

/** Starts a client with its own session directory, and closes it after the test. */
export async function start(t: TestContext, options: ConnectOptions = {}): Promise<Client> {
  const client = await connect({ command, sessionDir: await folder(t), ...options });
  t.after(() => client.close());
  return client;
}

/** Creates a session with the messages u1 → a1 → u2 → a2. The leaf is a2. */
export async function conversation(client: Client): Promise<string> {
  const { session } = await client.createSession();
  const { sessionId } = session;
  for (const id of ['u1', 'a1', 'u2', 'a2']) {
    const role = id.startsWith('u') ? 'user' : 'assistant';
    await client.appendMessage({
      sessionId,
      entryId: id,
      message: { role, content: [{ type: 'text', text: `says ${id}` }] },
    });
  }
  return sessionId;
}
