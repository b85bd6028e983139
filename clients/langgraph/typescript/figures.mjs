// Times checkpoints of a growing conversation beside LangGraph's own savers, and says the sizes.
//
// `put` is the median of 1,000 checkpoints of a list that grows by one message of 200 bytes, `state` the newest checkpoint,
// `history` a list of all of them. Another daemon reads what one has written. Needs
// `npm install --no-save @langchain/langgraph-checkpoint-sqlite@1.0.4`.

import { mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { HumanMessage } from '@langchain/core/messages';
import { emptyCheckpoint, MemorySaver } from '@langchain/langgraph-checkpoint';
import { SqliteSaver } from '@langchain/langgraph-checkpoint-sqlite';
import { connect } from 'treelined';
import { TreelinedSaver } from 'treelined-langgraph';

const STEPS = 1_000;
const thread = { configurable: { thread_id: 't' } };

async function timed(job) {
  const began = performance.now();
  const made = await job();
  return [performance.now() - began, made];
}

async function write(saver) {
  const messages = [];
  const times = [];
  let where = { configurable: { thread_id: 't', checkpoint_ns: '' } };
  for (let step = 0; step < STEPS; step++) {
    messages.push(new HumanMessage({ content: `${step} ${'word '.repeat(40)}`, id: `${step}` }));
    const versions = { messages: step + 1 };
    const checkpoint = { ...emptyCheckpoint(), channel_values: { messages: [...messages] } };
    checkpoint.channel_versions = versions;
    const metadata = { source: 'loop', step, parents: {} };
    const [time, config] = await timed(() => saver.put(where, checkpoint, metadata, versions));
    times.push(time);
    where = config;
  }
  return times.sort((one, other) => one - other)[STEPS / 2];
}

async function read(name, saver, put, folder) {
  const [state, tuple] = await timed(() => saver.getTuple(thread));
  if (tuple.checkpoint.channel_values.messages.length !== STEPS) throw new Error(name);
  const [history] = await timed(async () => {
    for await (const found of saver.list(thread)) if (!found.checkpoint) throw new Error(name);
  });
  let size = 0;
  for (const file of folder ? await readdir(folder, { recursive: true }) : []) {
    const found = await stat(join(folder, file));
    if (found.isFile()) size += found.size;
  }
  console.log(
    `${name}: put ${put.toFixed(2)} ms, state ${state.toFixed(1)} ms, ` +
      `history ${(history / 1e3).toFixed(2)} s, ${(size / 1e6).toFixed(2)} MB`,
  );
}

const folder = await mkdtemp(join(tmpdir(), 'treelined-'));
try {
  const memory = new MemorySaver();
  await read('MemorySaver', memory, await write(memory));
  for (const [name, full, durability] of [
    ['', 'NORMAL', 'interval'],
    [' synced', 'FULL', 'always'],
  ]) {
    const theirs = join(folder, `theirs${name}`);
    const ours = join(folder, `ours${name}`);
    await mkdir(theirs);
    const sqlite = SqliteSaver.fromConnString(join(theirs, 'x.db'));
    sqlite.db.pragma('journal_mode=WAL');
    sqlite.db.pragma(`synchronous=${full}`);
    await read(`SqliteSaver${name}`, sqlite, await write(sqlite), theirs);
    const first = await connect({ sessionDir: ours });
    const put = await write(new TreelinedSaver({ client: first, durability }));
    await first.close();
    const second = await connect({ sessionDir: ours });
    await read(`TreelinedSaver${name}`, new TreelinedSaver({ client: second }), put, ours);
    await second.close();
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}
