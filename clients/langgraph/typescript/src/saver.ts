// The checkpointer.

import { isDeepStrictEqual } from 'node:util';

import type { RunnableConfig } from '@langchain/core/runnables';
import {
  BaseCheckpointSaver,
  type ChannelVersions,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointPendingWrite,
  type CheckpointTuple,
  type DeltaChannelHistory,
  getCheckpointId,
  maxChannelVersion,
  type PendingWrite,
  type SerializerProtocol,
  TASKS,
  WRITES_IDX_MAP,
} from '@langchain/langgraph-checkpoint';
import { type Client, connect, type Methods, sessionIdOfKey, TreelinedError } from 'treelined';

import { Batch } from './batch.js';
import { asText, configOf, fits, isGiven, namesOf, select } from './configs.js';
import { entryId } from './ids.js';
import { define, type Json } from './plain.js';
import {
  CHECKPOINT,
  type CheckpointRecord,
  type Entry,
  GONE,
  HEAD,
  type Node,
  pair,
  Thread,
  type Write,
  WRITES,
} from './thread.js';
import { Codec, type Seen } from './values.js';

const TAG = 'langgraph';
/** Bytes of the threads that are kept in memory, each by the size of its file. */
const BUDGET = 256 << 20;
/** Threads that are kept in memory, and whose sessions stay open. */
const OPEN = 64;
/** Sessions whose keys are remembered. */
const KNOWN = 65_536;
/** Errors after which the thread is opened anew: another process has changed more than it appended. */
const CHANGED = ['sessionNotFound', 'sessionDeleted', 'sessionReplaced', 'entryNotFound'];

type AppendParams = Methods['append_entries']['params'];
type Durability = NonNullable<Methods['open_session']['params']['durability']>;

/** The session of a thread's id belongs to another program, or to another key. */
export class NotAThread extends Error {
  override readonly name = 'NotAThread';
}

/** Options of a saver. */
export interface SaverOptions {
  /** A client of treelined to use, which stays open. Without one the saver starts a daemon, which `close` ends. */
  client?: Client;
  /** `always` syncs each checkpoint. Default: that of the daemon. */
  durability?: Durability;
  /** In place of LangGraph's own serializer. */
  serde?: SerializerProtocol;
}

/** A checkpoint as it was when it was given. */
interface Given {
  metadata: Json;
  source: string;
  id: string;
  rest: Json;
  versions: ChannelVersions;
  values: Map<string, Seen>;
  /** The channels whose versions are new. */
  news: ReadonlySet<string>;
}

/**
 * Keeps the checkpoints of each thread in a session of treelined, as a tree. Calls take effect in the order in which they
 * are made.
 */
export class TreelinedSaver extends BaseCheckpointSaver {
  readonly #given: Client | undefined;
  readonly #policy: { durability?: Durability };
  readonly #codec: Codec;
  #own: Client | undefined;
  #isClosed = false;
  /** By key; the one that was used last is the last one. */
  readonly #threads = new Map<string, Thread>();
  readonly #keys = new Map<string, string>();
  /** The end of the last call. */
  #last: Promise<unknown> = Promise.resolve();

  constructor({ client, durability, serde }: SaverOptions = {}) {
    super(serde);
    this.#given = client;
    this.#policy = durability === undefined ? {} : { durability };
    this.#codec = new Codec(this.serde);
  }

  /** Waits for calls, and ends the daemon if the saver has started it. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#last;
    await this.#own?.close();
    this.#own = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /**
   * Returns a version greater than the current one: a text, as in Python, so that both languages can go on with a
   * thread. LangGraph takes texts too, but the type of its option `checkpointer` has only numbers.
   */
  override getNextVersion(current: number | undefined): number {
    const version = String(current ?? 0).split('.', 1)[0] ?? '';
    const next = String(Number.parseInt(version, 10) + 1).padStart(32, '0');
    return `${next}.${String(Math.random()).padStart(16, '0')}` as unknown as number;
  }

  /** Returns the checkpoint that the config names, else the newest one. */
  override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    if (!isGiven(config.configurable?.thread_id)) return undefined;
    const { key, ns, id } = namesOf(config);
    return this.#on(key, async (thread) => {
      const node = id === undefined ? thread.newest.get(ns) : thread.node(ns, id);
      return node === undefined || node.isGone ? undefined : this.#tuple(thread, node);
    });
  }

  /** Yields checkpoints, the newest of a thread first. */
  override async *list(
    config: RunnableConfig,
    options: CheckpointListOptions = {},
  ): AsyncGenerator<CheckpointTuple> {
    const { before, filter = {} } = options;
    const { thread_id, checkpoint_ns } = (config.configurable ?? {}) as Json;
    const id = getCheckpointId(config);
    const end = before === undefined ? '' : getCheckpointId(before);
    let limit = options.limit ?? Infinity;
    const keys = isGiven(thread_id) ? [asText(thread_id)] : await this.#run((it) => this.#all(it));
    for (const key of keys) {
      const found = await this.#on(key, async (thread) =>
        select(thread, checkpoint_ns as string | undefined, id, end).map((node) => [thread, node]),
      );
      for (const [thread, node] of (found ?? []) as [Thread, Node][]) {
        if (limit <= 0) return;
        const tuple = await this.#run(() => this.#tuple(thread, node));
        if (!fits(tuple.metadata as Json, filter as Json)) continue;
        limit -= 1;
        yield tuple;
      }
    }
  }

  /** Appends the checkpoint below its parent. */
  override async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<RunnableConfig> {
    const { key, ns, id } = namesOf(config);
    // Seen at once: the graph may go on and change the values.
    const given = handled(this.#see(checkpoint, metadata, newVersions));
    await this.#on(key, async (thread) => this.#put(thread, ns, id, await given), true);
    return configOf(key, ns, checkpoint.id);
  }

  /** Appends what a task wrote after a checkpoint. */
  override async putWrites(
    config: RunnableConfig,
    writes: PendingWrite[],
    taskId: string,
    taskPath = '',
  ): Promise<void> {
    const { key, ns, id } = namesOf(config);
    if (id === undefined) throw new TypeError('the config has no checkpoint_id');
    const forms = writes.map(async ([channel, value], place): Promise<Write> => {
      const form = JSON.parse(await this.#codec.text(value)) as Json;
      return [WRITES_IDX_MAP[channel] ?? place, channel, form];
    });
    const given = handled(Promise.all(forms));
    await this.#on(
      key,
      async (thread) => {
        const stored = (index: number) => thread.write(ns, id, taskId, index);
        const fresh = (await given).filter(([index]) => index < 0 || stored(index) === undefined);
        const isStored = fresh.every(([index, channel, form]) => {
          const at = stored(index);
          return (
            at?.path === taskPath && at.channel === channel && isDeepStrictEqual(at.form, form)
          );
        });
        if (isStored) return;
        const data = { ns, id, task: taskId, path: taskPath, writes: fresh };
        const name = entryId('writes', ns, id, taskId, thread.count(ns, id), fresh);
        const below = (thread.node(ns, id) ?? thread.newest.get(''))?.tail ?? thread.head;
        const entry = { type: 'custom', customType: WRITES, id: name, data };
        await append(thread, [entry], below, ns !== '');
      },
      true,
    );
  }

  /** Moves the thread's session to the trash. */
  override async deleteThread(threadId: string): Promise<void> {
    await this.#on(threadId, async (thread) => {
      this.#threads.delete(threadId);
      try {
        await thread.client.deleteSession({ sessionId: thread.session });
      } catch (error) {
        // Another process was faster.
        if (!isKind(error, ...CHANGED)) throw error;
      }
    });
  }

  /**
   * Hides all checkpoints but the newest ones, or moves the threads to the trash. What is hidden stays on the disk: other
   * checkpoints have their values there.
   */
  async prune(
    threadIds: readonly string[],
    strategy: 'keep_latest' | 'delete' = 'keep_latest',
  ): Promise<void> {
    for (const key of threadIds) {
      if (strategy === 'delete') {
        await this.deleteThread(key);
        continue;
      }
      await this.#on(key, async (thread) => {
        const gone = [...thread.nodes.values()].filter(
          (node) => !node.isGone && thread.newest.get(node.record.ns) !== node,
        );
        if (gone.length === 0) return;
        const checkpoints = gone.map(({ record }) => [record.ns, record.id]);
        const id = entryId(GONE, thread.nodes.size, checkpoints);
        const entry = { type: 'custom', customType: GONE, id, data: { checkpoints } };
        await append(thread, [entry], thread.head, true);
      });
    }
  }

  /**
   * Returns for each channel the writes above a checkpoint, down to its nearest stored value. Hidden checkpoints count,
   * since the value of a channel may hang on what was written at one.
   */
  override async getDeltaChannelHistory(options: {
    config: RunnableConfig;
    channels: string[];
  }): Promise<Record<string, DeltaChannelHistory>> {
    const { key, ns, id } = namesOf(options.config);
    const found: Json = {};
    for (const channel of options.channels) define(found, channel, { writes: [] });
    await this.#on(key, async (thread) => {
      const wanted = new Set(options.channels);
      const from = id === undefined ? thread.newest.get(ns) : thread.node(ns, id);
      let node = from === undefined || from.isGone ? undefined : from.parent;
      for (; node !== undefined && wanted.size > 0; node = node.parent) {
        const stored = thread.writes(ns, node.record.id).filter((it) => wanted.has(it.channel));
        for (const { task, channel, form } of stored.reverse()) {
          const value = await this.#codec.read(form, thread.messages);
          (found[channel] as DeltaChannelHistory).writes.push([task, channel, value]);
        }
        for (const channel of [...wanted].filter((name) => node?.at.has(name))) {
          const history = found[channel] as DeltaChannelHistory;
          history.seed = await this.#codec.read(node.form(channel), thread.messages);
          wanted.delete(channel);
        }
      }
    });
    for (const history of Object.values(found)) (history as DeltaChannelHistory).writes.reverse();
    return found as Record<string, DeltaChannelHistory>;
  }

  async #see(
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<Given> {
    const { channel_values: values, ...rest } = checkpoint;
    const names = Object.keys(values);
    const seen = names.map(async (name): Promise<[string, Seen]> => [
      name,
      await this.#codec.see(values[name]),
    ]);
    const about = (async () => this.#codec.text(metadata))();
    const text = (async () => this.#codec.text(rest))();
    const versions = { ...rest.channel_versions };
    const { source } = metadata;
    const { id } = checkpoint;
    const news = new Set(Object.keys(newVersions));
    const [of, base, all] = await Promise.all([about, text, Promise.all(seen)]);
    return {
      metadata: JSON.parse(of) as Json,
      source,
      id,
      rest: JSON.parse(base) as Json,
      versions,
      values: new Map(all),
      news,
    };
  }

  async #put(
    thread: Thread,
    ns: string,
    parentId: string | undefined,
    given: Given,
  ): Promise<void> {
    const parent = thread.node(ns, parentId);
    const { metadata, rest: checkpoint } = given;
    const of = parentId === undefined ? {} : { parent: parentId };
    const base = { ns, id: given.id, ...of, metadata, checkpoint };
    const written: [string, Seen][] = [];
    const dropped = new Set(parent?.at.keys());
    for (const [name, seen] of given.values) {
      const isNew = given.news.has(name);
      const version = given.versions[name];
      const isSame = !isNew && (await this.#isVersion(parent, name, version));
      // Like the savers of LangGraph that store each version once: one that is neither new nor known has no value.
      const isStored = isNew || (!isSame && (await this.#isKnown(thread, ns, name, version)));
      if (isStored) written.push([name, seen]);
      if (isSame || isStored) dropped.delete(name);
    }
    const record: CheckpointRecord = { ...base, dropped: [...dropped].sort(), values: {} };
    const above = parent ?? thread.above(record);
    const before = thread.node(ns, given.id);
    const count = thread.versions.get(pair(ns, given.id)) ?? 0;
    // With the ids of the last record, a repeated call makes the same record.
    for (const version of before === undefined ? [0] : [count - 1, count]) {
      const seed = [ns, given.id, version];
      const batch = new Batch(thread, above, seed);
      record.values = batch.values(parent, written);
      if (before !== undefined && isDeepStrictEqual(before.record, record)) return;
      if (before !== undefined && version < count) continue;
      const name = entryId('checkpoint', ...seed);
      batch.entries.push({ type: 'custom', customType: CHECKPOINT, id: name, data: record });
      if (parent?.hasChild === true) batch.label(parent, given.source, name);
      thread.expect(name, batch);
      const below = parent?.tail ?? above?.entry ?? thread.head;
      await append(thread, batch.entries, below, ns !== '');
    }
  }

  /** Returns whether the checkpoint has this version of the channel, and its value. */
  async #isVersion(node: Node | undefined, name: string, version: unknown): Promise<boolean> {
    if (version === undefined || node?.at.has(name) !== true) return false;
    if (node.versions === undefined) {
      const checkpoint = await this.#codec.read(node.record.checkpoint, new Map());
      node.versions = (checkpoint as Checkpoint).channel_versions;
    }
    return node.versions[name] === version;
  }

  /** Returns whether any checkpoint of the namespace has this version of the channel. */
  async #isKnown(thread: Thread, ns: string, name: string, version: unknown): Promise<boolean> {
    for (const node of thread.nodes.values()) {
      if (node.record.ns === ns && (await this.#isVersion(node, name, version))) return true;
    }
    return false;
  }

  async #tuple(thread: Thread, node: Node): Promise<CheckpointTuple> {
    const { record } = node;
    const forms: Json = {};
    for (const name of node.at.keys()) define(forms, name, node.form(name));
    const read = (form: Json) => this.#codec.read(form, thread.messages);
    const channel_values = await this.#codec.readAll(forms, thread.messages);
    const rest = (await read(record.checkpoint)) as Omit<Checkpoint, 'channel_values'>;
    const checkpoint: Checkpoint = { ...rest, channel_values };
    const pendingWrites = await this.#writes(thread, record.ns, record.id);
    const tuple: CheckpointTuple = {
      config: configOf(thread.key, record.ns, record.id),
      checkpoint,
      metadata: (await read(record.metadata)) as CheckpointMetadata,
      pendingWrites,
    };
    if (record.parent === undefined) return tuple;
    tuple.parentConfig = configOf(thread.key, record.ns, record.parent);
    if (checkpoint.v < 4) {
      // Before version 4, what was sent was a write of the parent.
      const sent = await this.#writes(thread, record.ns, record.parent);
      channel_values[TASKS] = sent.flatMap(([, name, value]) => (name === TASKS ? [value] : []));
      const versions = Object.values(checkpoint.channel_versions);
      checkpoint.channel_versions[TASKS] =
        versions.length > 0 ? maxChannelVersion(...versions) : this.getNextVersion(undefined);
    }
    return tuple;
  }

  async #writes(thread: Thread, ns: string, id: string): Promise<CheckpointPendingWrite[]> {
    const writes: CheckpointPendingWrite[] = [];
    for (const { task, channel, form } of thread.writes(ns, id)) {
      writes.push([task, channel, await this.#codec.read(form, thread.messages)]);
    }
    return writes;
  }

  /** Runs the job after those before it, whatever came of them. */
  async #run<T>(job: (client: Client) => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new Error('the saver is closed');
    const done = this.#last.then(async () => job(this.#given ?? (this.#own ??= await connect())));
    this.#last = done.catch(() => undefined);
    return done;
  }

  /** Runs the job with all that the thread has now; without a job's result if there is no such thread. */
  async #on<T>(
    key: string,
    job: (thread: Thread) => Promise<T>,
    create = false,
  ): Promise<T | undefined> {
    return this.#run(async (client) => {
      for (let attempt = 1; ; attempt++) {
        try {
          const thread = await this.#open(client, key, create);
          return thread === undefined ? undefined : await job(thread);
        } catch (error) {
          const thread = this.#threads.get(key);
          if (thread === undefined || attempt > 1 || !isKind(error, ...CHANGED)) throw error;
          await this.#forget(thread);
        }
      }
    });
  }

  async #open(client: Client, key: string, create: boolean): Promise<Thread | undefined> {
    let thread = this.#threads.get(key);
    if (thread?.isThere() === false) {
      await this.#forget(thread);
      thread = undefined;
    }
    thread ??= await this.#load(client, key, create);
    if (thread === undefined) return undefined;
    if (create && !thread.isTagged) {
      // Also for a thread whose process has ended before: a tag is written once.
      await client.tagSession({ sessionId: thread.session, add: [TAG] });
      thread.isTagged = true;
    }
    this.#threads.delete(key);
    this.#threads.set(key, thread);
    await thread.read();
    await this.#shrink(thread);
    return thread;
  }

  async #load(client: Client, key: string, create: boolean): Promise<Thread | undefined> {
    const sessionId = sessionIdOfKey(key);
    let path: string | undefined;
    try {
      path = (await client.openSession({ sessionId, ...this.#policy })).session.path;
    } catch (error) {
      if (!isKind(error, 'sessionNotFound', 'sessionDeleted')) throw error;
      if (!create) return undefined;
      const made = await client.createSession({ sessionId, write: 'first-entry', ...this.#policy });
      path = made.session.path;
      const id = entryId(HEAD, key);
      const head = { type: 'custom', customType: HEAD, id, data: { key } } as const;
      await client.appendEntries({ sessionId, entries: [head] });
    }
    if ((await keyOf(client, sessionId)) !== key) {
      throw new NotAThread(
        `the session ${sessionId} is not of the thread ${JSON.stringify(key)}: use another thread_id`,
      );
    }
    return new Thread(client, key, sessionId, path);
  }

  /** Returns the keys of all threads. */
  async #all(client: Client): Promise<string[]> {
    const keys: string[] = [];
    let cursor: string | undefined;
    do {
      const from = cursor === undefined ? {} : { cursor };
      const page = await client.listSessions({ tags: [TAG], archived: true, ...from });
      for (const { sessionId } of page.sessions) {
        const key = this.#keys.get(sessionId) ?? (await this.#find(client, sessionId));
        // A fork that treelined has made has the key of its source.
        if (key === undefined || sessionIdOfKey(key) !== sessionId) continue;
        if (this.#keys.size >= KNOWN) this.#keys.clear();
        this.#keys.set(sessionId, key);
        keys.push(key);
      }
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
    return keys;
  }

  async #find(client: Client, sessionId: string): Promise<string | undefined> {
    try {
      await client.openSession({ sessionId, ...this.#policy });
      const key = await keyOf(client, sessionId);
      const isUsed = [...this.#threads.values()].some(({ session }) => session === sessionId);
      if (!isUsed) await client.closeSession({ sessionId });
      return key;
    } catch (error) {
      // It was deleted meanwhile, or cannot be read.
      if (!(error instanceof TreelinedError)) throw error;
      return undefined;
    }
  }

  /** Forgets the threads that were used the longest ago. */
  async #shrink(used: Thread): Promise<void> {
    used.measure();
    let size = 0;
    for (const thread of this.#threads.values()) size += thread.size;
    for (const thread of [...this.#threads.values()]) {
      if ((size <= BUDGET && this.#threads.size <= OPEN) || thread === used) return;
      size -= thread.size;
      await this.#forget(thread);
    }
  }

  async #forget(thread: Thread): Promise<void> {
    this.#threads.delete(thread.key);
    try {
      await thread.client.closeSession({ sessionId: thread.session });
    } catch (error) {
      if (!(error instanceof TreelinedError)) throw error;
    }
  }
}

/** Appends entries below another one. A part of a graph runs beside the conversation, and does not move the leaf. */
async function append(
  thread: Thread,
  entries: Entry[],
  parentId: string | undefined,
  isBeside: boolean,
): Promise<void> {
  const params = {
    sessionId: thread.session,
    entries,
    parentId: parentId ?? null,
    ...(isBeside && { keepLeaf: true }),
  };
  await thread.client.call('append_entries', params as unknown as AppendParams);
}

/** Returns the key in the first entry of an open session. */
async function keyOf(client: Client, sessionId: string): Promise<string | undefined> {
  const page = await client.getEntries({ sessionId, customType: HEAD });
  const { data } = (page.entries[0] ?? {}) as { data?: { key?: unknown } };
  return typeof data?.key === 'string' ? data.key : undefined;
}

/** Keeps an error from being reported before somebody waits for the promise. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

function isKind(error: unknown, ...kinds: string[]): boolean {
  return error instanceof TreelinedError && kinds.includes(error.kind);
}
