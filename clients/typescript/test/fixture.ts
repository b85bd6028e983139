// What tests share: the daemon to test, a folder of its own for each client, a conversation.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { type Client, type ConnectOptions, connect } from 'treelined';

/** The daemon: TREELINED_BIN, else what the PATH has. */
export const command = process.env.TREELINED_BIN ?? 'treelined';

/** The folder of the package, seen from build/test/. */
export const packageDir = new URL('../../', import.meta.url);

/** A folder that is gone after the test. */
export async function folder(t: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'treelined-'));
  t.after(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** A client with a session folder of its own; closed after the test. */
export async function start(t: TestContext, options: ConnectOptions = {}): Promise<Client> {
  const client = await connect({ command, sessionDir: await folder(t), ...options });
  t.after(() => client.close());
  return client;
}

/** A session with the messages u1 → a1 → u2 → a2, the leaf at a2. */
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
