// The suite that LangGraph publishes, unchanged, with the part that it leaves to each saver.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { deltaChannelHistoryTests, validate } from '@langchain/langgraph-checkpoint-validation';
import { type Client, connect } from 'treelined';

import { TreelinedSaver } from '../src/index.js';

const made = new WeakMap<TreelinedSaver, { client: Client; folder: string }>();

const initializer = {
  checkpointerName: 'TreelinedSaver',
  async createCheckpointer(): Promise<TreelinedSaver> {
    const folder = await mkdtemp(join(tmpdir(), 'treelined-'));
    const client = await connect({ sessionDir: folder });
    const saver = new TreelinedSaver({ client });
    made.set(saver, { client, folder });
    return saver;
  },
  async destroyCheckpointer(saver: TreelinedSaver): Promise<void> {
    await saver.close();
    const { client, folder } = made.get(saver) ?? {};
    await client?.close();
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  },
};

validate(initializer);
deltaChannelHistoryTests(initializer);
