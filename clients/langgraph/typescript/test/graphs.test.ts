// Graphs of LangGraph on the saver, beside the saver in memory.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';

import {
  AIMessage,
  AIMessageChunk,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
} from '@langchain/core/messages';
import { Annotation, Command, interrupt, START, StateGraph } from '@langchain/langgraph';
import {
  type BaseCheckpointSaver,
  type Checkpoint,
  type CheckpointMetadata,
  emptyCheckpoint,
  JsonPlusSerializer,
  MemorySaver,
} from '@langchain/langgraph-checkpoint';
import type { Client } from 'treelined';

import { NotAThread, TreelinedSaver, UnreadableValue } from '../src/index.js';
import { config, folder, history, say, start, stepOf, talk } from './fixture.js';

type Values = Record<string, unknown>;
interface Entry {
  type: string;
  label?: string;
  message?: { role: string; content: unknown };
  customType?: string;
  data?: unknown;
}

async function entriesOf(client: Client, sessionId: string): Promise<Entry[]> {
  return (await client.getEntries({ sessionId })).entries as unknown as Entry[];
}

/** Puts values below a checkpoint, all of them new. */
async function put(
  saver: BaseCheckpointSaver,
  where: ReturnType<typeof config>,
  values: Values,
  step = 0,
): Promise<ReturnType<typeof config>> {
  const versions = Object.fromEntries(Object.keys(values).map((name) => [name, step + 1]));
  const checkpoint: Checkpoint = {
    ...emptyCheckpoint(),
    channel_values: values,
    channel_versions: versions,
  };
  const metadata: CheckpointMetadata = { source: 'loop', step, parents: {} };
  return saver.put(where, checkpoint, metadata, versions);
}

async function valuesOf(saver: BaseCheckpointSaver, where: ReturnType<typeof config>) {
  return (await saver.getTuple(where))?.checkpoint.channel_values;
}

test('a conversation is that of the saver in memory', async (t) => {
  const client = await start(t);
  const graphs = [talk(new TreelinedSaver({ client })), talk(new MemorySaver())] as const;
  for (const graph of graphs) {
    for (const text of ['one', 'two', 'three']) await say(graph, config('talk'), text);
    // Go back to before "three" and ask otherwise, then edit the state of the first answer.
    await say(graph, await stepOf(graph, config('talk'), 4), 'otherwise');
    const edited = new HumanMessage({ content: 'edited', id: 'one' });
    await graph.updateState(await stepOf(graph, config('talk'), 1), { messages: [edited] });
    await say(graph, config('talk'), 'last');
  }
  const [ours, theirs] = graphs;
  assert.deepEqual(await history(ours, config('talk')), await history(theirs, config('talk')));
});

test('messages are readable, and time travel is a branch', async (t) => {
  const client = await start(t);
  const graph = talk(new TreelinedSaver({ client }));
  for (const text of ['one', 'two']) await say(graph, config('talk'), text);
  await say(graph, await stepOf(graph, config('talk'), 1), 'otherwise');
  const entries = await entriesOf(client, 'talk');
  const texts = entries.flatMap((entry) => (entry.message ? [entry.message.content] : []));
  assert.equal(texts[0], 'one');
  assert.equal(texts.filter((text) => text === 'one').length, 1);
  const { branches } = await client.listBranches({ sessionId: 'talk' });
  assert.equal(branches.length, 2);
  const labels = entries.flatMap((entry) => (entry.type === 'label' ? [entry.label] : []));
  assert.deepEqual(labels, ['time travel at step 1']);
});

test('another process goes on with an interrupted graph', async (t) => {
  const sessionDir = await folder(t);
  const State = Annotation.Root({
    words: Annotation<string[]>({ reducer: (a, b) => [...a, ...b], default: () => [] }),
  });
  const graphOf = (checkpointer: BaseCheckpointSaver) =>
    new StateGraph(State)
      .addNode('ask', () => ({ words: [interrupt<string, string>('which?')] }))
      .addEdge(START, 'ask')
      .compile({ checkpointer });

  const first = await start(t, sessionDir);
  const asked = await graphOf(new TreelinedSaver({ client: first })).invoke(
    { words: ['a'] },
    config('x y'),
  );
  assert.equal(
    (asked as { __interrupt__?: { value: string }[] }).__interrupt__?.[0]?.value,
    'which?',
  );
  await first.close();
  const saver = new TreelinedSaver({ client: await start(t, sessionDir) });
  const done = await graphOf(saver).invoke(new Command({ resume: 'b' }), config('x y'));
  assert.deepEqual(done.words, ['a', 'b']);
  for await (const { config: found } of saver.list({}, { limit: 1 })) {
    assert.equal(found.configurable?.thread_id, 'x y');
  }
});

test('two savers see each other, also after one has deleted the thread', async (t) => {
  const sessionDir = await folder(t);
  const ours = new TreelinedSaver({ client: await start(t, sessionDir) });
  const theirs = new TreelinedSaver({ client: await start(t, sessionDir) });
  await say(talk(ours), config('t'), 'one');
  await say(talk(theirs), config('t'), 'two');
  await say(talk(ours), config('t'), 'three');
  const messages = async () => (await valuesOf(theirs, config('t')))?.messages as BaseMessage[];
  const human = (await messages()).filter((message) => message.type === 'human');
  assert.deepEqual(
    human.map((message) => message.content),
    ['one', 'two', 'three'],
  );
  await ours.deleteThread('t');
  await theirs.deleteThread('t');
  assert.equal(await theirs.getTuple(config('t')), undefined);
  await say(talk(theirs), config('t'), 'again');
  assert.equal((await messages()).length, 4);
});

test('random states come back as from the saver in memory', async (t) => {
  const client = await start(t);
  const savers = [new TreelinedSaver({ client }), new MemorySaver()] as const;
  let seed = 11;
  const chance = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below;
  const call = { name: 'add', args: { a: [1] }, id: 'c', type: 'tool_call' as const };
  const nested = new HumanMessage({ content: 'in', id: 'n' });
  const pool: unknown[] = [
    1, null, 'text', 1.5, new Uint8Array([0, 255]), { a: [1, { b: null }] }, new Set([1, 2]), '\ud800',
    undefined, { a: undefined, b: [undefined, nested], c: { d: nested } }, new Date(0), new Map([[1, 2]]),
    new HumanMessage({ content: 'hi', id: 'h' }),
    new HumanMessage({ content: [{ type: 'text', text: 'a' }, { type: 'image_url', image_url: 'u' }] }),
    new AIMessage({ content: 'yes', response_metadata: { model: 'm', gone: undefined } }),
    new AIMessage({ content: [{ type: 'text', text: 'x' }], tool_calls: [call], name: 'n' }),
    new AIMessage({ content: 'v1', response_metadata: { output_version: 'v1' } }),
    new ToolMessage({ content: 'no', tool_call_id: 'c', status: 'error', artifact: { x: [] } }),
    new ToolMessage({ content: 'ok', tool_call_id: 'c', status: 'success', metadata: { y: 1 } }),
    new SystemMessage('be kind'), new AIMessageChunk('half'),
    new AIMessage({ content: 'no type', tool_calls: [{ name: 'n', args: {}, id: 'i' }] }),
  ]; // prettier-ignore
  const known: { where: ReturnType<typeof config>; values: Values }[] = [
    { where: config('r'), values: {} },
  ];
  for (let step = 0; step < 80; step++) {
    const from = known[chance(known.length)] ?? { where: config('r'), values: {} };
    const list = (from.values.list ?? []) as unknown[];
    const more = Array.from({ length: chance(4) }, () => pool[chance(pool.length)]);
    const values: Values = { list: [...list.slice(0, list.length - chance(3)), ...more] };
    if (chance(3) > 0) values.one = pool[chance(pool.length)];
    const versions = Object.fromEntries(Object.keys(values).map((name) => [name, step]));
    const checkpoint = { ...emptyCheckpoint(), channel_values: values, channel_versions: versions };
    const metadata: CheckpointMetadata = { source: 'loop', step, parents: {} };
    const [where = config('r'), other] = await Promise.all(
      savers.map((saver) => saver.put(from.where, checkpoint, metadata, versions)),
    );
    assert.deepEqual(where, other);
    // A repeated call writes nothing.
    await savers[0].put(from.where, checkpoint, metadata, versions);
    await savers[0].putWrites(where, [['list', values.list]], 'task');
    await savers[1].putWrites(where, [['list', values.list]], 'task');
    known.push({ where, values });
  }
  const another = new TreelinedSaver({ client });
  for (const { where } of known) {
    const theirs = plain(await savers[1].getTuple(where));
    if (where.configurable?.checkpoint_id === undefined) continue;
    assert.deepEqual(plain(await savers[0].getTuple(where)), theirs);
    assert.deepEqual(plain(await another.getTuple(where)), theirs);
  }
  assert.ok((await entriesOf(client, 'r')).length < 80 * 7);
});

/** Returns a value with each message as its type and members, in an order of their own. */
function plain(value: unknown): unknown {
  if (value instanceof Map || value instanceof Set)
    return [value.constructor.name, [...value].map(plain)];
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value;
  const isMessage = 'lc_kwargs' in value;
  const hidden = new Set(isMessage ? ['lc_kwargs', 'lc_namespace'] : []);
  const members = Object.entries(value).filter(([name]) => !hidden.has(name));
  const defined = isMessage ? members.filter(([, member]) => member !== undefined) : members;
  return Object.fromEntries(defined.map(([name, member]) => [name, plain(member)]));
}

test('each channel is stored once a version, a list by its new items', async (t) => {
  const client = await start(t);
  const saver = new TreelinedSaver({ client });
  const first = new HumanMessage({ content: 'a', id: 'a' });
  let where = await put(saver, config('l'), { list: [first], big: 'x'.repeat(1_000) });
  for (let step = 1; step < 4; step++) {
    const { checkpoint: before = emptyCheckpoint() } = (await saver.getTuple(where)) ?? {};
    const list = [...(before.channel_values.list as unknown[]), step];
    const versions = { ...before.channel_versions, list: step + 1 };
    const checkpoint = {
      ...emptyCheckpoint(),
      channel_values: { ...before.channel_values, list },
      channel_versions: versions,
    };
    const metadata: CheckpointMetadata = { source: 'loop', step, parents: {} };
    where = await saver.put(where, checkpoint, metadata, { list: step + 1 });
  }
  const values = await valuesOf(saver, where);
  assert.deepEqual((values?.list as unknown[]).slice(1), [1, 2, 3]);
  assert.equal((values?.big as string).length, 1_000);
  const records = (await entriesOf(client, 'l')).flatMap((entry) =>
    entry.customType === 'langgraph.checkpoint' ? [(entry.data as { values: Values }).values] : [],
  );
  assert.deepEqual(
    records.slice(1).map((record) => record),
    [1, 2, 3].map((step) => ({ list: { keep: step, items: [{ json: step }] } })),
  );
});

test('a value that is changed after a call, or in place, is stored as it was at the call', async (t) => {
  const saver = new TreelinedSaver({ client: await start(t) });
  const message = new HumanMessage({ content: 'a', id: 'm' });
  const value = { n: 1 };
  const list = [message, value];
  const making = put(saver, config('p'), { list, value });
  message.content = 'b';
  value.n = 2;
  const first = await making;
  const second = await put(saver, first, { list, value }, 1);
  const read = async (where: ReturnType<typeof config>) => {
    const found = (await valuesOf(saver, where)) as { list: [BaseMessage, Values]; value: Values };
    return [found.list[0].content, found.list[1], found.value];
  };
  assert.deepEqual(await read(first), ['a', { n: 1 }, { n: 1 }]);
  assert.deepEqual(await read(second), ['b', { n: 2 }, { n: 2 }]);
});

test('with another serializer everything is as that one writes it', async (t) => {
  const sessionDir = await folder(t);
  const client = await start(t, sessionDir);
  class Secret extends JsonPlusSerializer {
    override async dumpsTyped(value: unknown): Promise<[string, Uint8Array]> {
      const [type, data] = await super.dumpsTyped(value);
      return [type, data.map((byte) => byte ^ 0x55)];
    }
    override async loadsTyped(type: string, data: Uint8Array): Promise<unknown> {
      return super.loadsTyped(
        type,
        data.map((byte) => byte ^ 0x55),
      ) as Promise<unknown>;
    }
  }
  const saver = new TreelinedSaver({ client, serde: new Secret() });
  const graph = talk(saver);
  for (const text of ['word one', 'word two']) await say(graph, config('s'), text);
  await say(graph, await stepOf(graph, config('s'), 1), 'word three');
  const memory = talk(new MemorySaver());
  for (const text of ['word one', 'word two']) await say(memory, config('s'), text);
  await say(memory, await stepOf(memory, config('s'), 1), 'word three');
  assert.deepEqual(await history(graph, config('s')), await history(memory, config('s')));
  const { session } = await client.openSession({ sessionId: 's' });
  assert.ok(!(await readFile(session.path ?? '', 'utf8')).includes('word'));
});

test('hidden checkpoints do not cut the history of a channel', async (t) => {
  const saver = new TreelinedSaver({ client: await start(t) });
  let where = await put(saver, config('d'), { c: ['seed'] });
  for (let step = 0; step < 3; step++) {
    await saver.putWrites(where, [['c', step]], `task ${step}`);
    where = await put(saver, where, {}, step + 1);
  }
  const read = () => saver.getDeltaChannelHistory({ config: where, channels: ['c'] });
  const before = await read();
  const writes = [0, 1, 2].map((step) => [`task ${step}`, 'c', step]);
  assert.deepEqual(before, { c: { writes, seed: ['seed'] } });
  await saver.prune(['d']);
  const left: unknown[] = [];
  for await (const tuple of saver.list(config('d'))) left.push(tuple.config);
  assert.deepEqual(left, [where]);
  assert.deepEqual(await read(), before);
});

test('many threads are kept apart, and the oldest ones are opened again', async (t) => {
  const saver = new TreelinedSaver({ client: await start(t) });
  const names = Array.from({ length: 70 }, (_, number) => `thread ${number}`);
  for (const name of names) await put(saver, config(name), { name });
  for (const name of ['thread 0', 'thread 69']) {
    assert.deepEqual(await valuesOf(saver, config(name)), { name });
  }
  const found = new Set<unknown>();
  for await (const { checkpoint } of saver.list({})) found.add(checkpoint.channel_values.name);
  assert.deepEqual([...found].sort(), names.sort());
});

test('writes at one place may change to and fro', async (t) => {
  const saver = new TreelinedSaver({ client: await start(t) });
  const where = await put(saver, config('w'), {});
  for (const value of ['a', 'b', 'a', 'b', 'b']) {
    await saver.putWrites(where, [['__error__', value]], 'task');
    assert.deepEqual((await saver.getTuple(where))?.pendingWrites, [['task', '__error__', value]]);
  }
});

test('entries of others, forks and sessions of others are not taken for threads', async (t) => {
  const client = await start(t);
  const saver = new TreelinedSaver({ client });
  await say(talk(saver), config('a'), 'one');
  await client.appendMessage({ sessionId: 'a', message: { role: 'user', content: 'by hand' } });
  await say(talk(saver), config('a'), 'two');
  assert.equal(((await valuesOf(saver, config('a')))?.messages as unknown[]).length, 8);
  const entryId = (await client.getEntries({ sessionId: 'a' })).entries.at(-1)?.id ?? '';
  const fork = await client.forkSession({ sessionId: 'a', entryId });
  await client.tagSession({ sessionId: fork.session?.sessionId ?? '', add: ['langgraph'] });
  // As if the process had ended before it set the tag.
  await client.tagSession({ sessionId: 'a', remove: ['langgraph'] });
  await say(talk(new TreelinedSaver({ client })), config('a'), 'three');
  const keys = new Set<unknown>();
  for await (const tuple of saver.list({})) keys.add(tuple.config.configurable?.thread_id);
  assert.deepEqual([...keys], ['a']);
  await client.createSession({ sessionId: 'taken', write: 'now' });
  await client.appendMessage({ sessionId: 'taken', message: { role: 'user', content: 'x' } });
  await assert.rejects(say(talk(saver), config('taken'), 'one'), NotAThread);
});

test('a value that only Python reads is an error that says so', async (t) => {
  const client = await start(t);
  const saver = new TreelinedSaver({ client });
  const where = await put(saver, config('m'), {});
  const { checkpoint_id: id } = where.configurable as { checkpoint_id: string };
  const writes = [[0, 'c', { type: 'msgpack', base64: 'gA==' }]];
  const data = { ns: '', id, task: 't', path: '', writes };
  const entry = { type: 'custom', customType: 'langgraph.writes', data } as const;
  await client.appendEntries({ sessionId: 'm', entries: [entry] });
  await assert.rejects(saver.getTuple(where), UnreadableValue);
});
