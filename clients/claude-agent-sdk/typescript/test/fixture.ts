// Functions that the tests share: for folders, clients, stores and records.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { SessionStoreEntry } from '@anthropic-ai/claude-agent-sdk';
import { type Client, connect } from 'treelined';
import { TreelinedSessionStore } from '../src/index.js';

/** The root of the repository, relative to build/test/. */
export const root = new URL('../../../../../', import.meta.url);

/** Makes a folder that is removed after the test. */
export async function folder(t: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'treelined-'));
  t.after(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** Starts a client, and closes it after the test. */
export async function start(t: TestContext, sessionDir?: string): Promise<Client> {
  const client = await connect({ sessionDir: sessionDir ?? (await folder(t)) });
  t.after(() => client.close());
  return client;
}

export async function store(t: TestContext, sessionDir?: string): Promise<TreelinedSessionStore> {
  return new TreelinedSessionStore({ client: await start(t, sessionDir) });
}

/** Returns a record of a prompt. */
export function said(
  uuid: string,
  parentUuid: string | null,
  content: unknown,
  more: object = {},
): SessionStoreEntry {
  const message = { role: 'user', content };
  const timestamp = '2026-03-01T09:30:00.000Z';
  return { parentUuid, sessionId: 's', type: 'user', message, uuid, timestamp, ...more };
}

/** Returns a record of an answer. */
export function answered(uuid: string, parentUuid: string, text: string): SessionStoreEntry {
  const content = [{ type: 'text', text }];
  const message = { id: `msg_${uuid}`, role: 'assistant', model: 'claude-sonnet-4-5', content };
  return said(uuid, parentUuid, '', { type: 'assistant', message });
}
