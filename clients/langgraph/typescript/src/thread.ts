// One thread: its session, and what the session says about checkpoints.

import { existsSync, statSync } from 'node:fs';

import { compareWritesSortKeys, writesSortKey } from '@langchain/langgraph-checkpoint';
import type { Client } from 'treelined';

import { has, type Json } from './plain.js';

/** Bytes of a page of entries. */
const PAGE = 8 << 20;

export const HEAD = 'langgraph.thread';
export const CHECKPOINT = 'langgraph.checkpoint';
export const WRITES = 'langgraph.writes';
export const GONE = 'langgraph.deleted';

/** An entry of the session, or one to append. */
export interface Entry extends Json {
  type: string;
  id: string;
  parentId?: string | null;
}

/** The data of a checkpoint. */
export interface CheckpointRecord {
  ns: string;
  id: string;
  parent?: string;
  metadata: Json;
  checkpoint: Json;
  dropped?: string[];
  values: Json;
}

/** A write of a task: its index, its channel, and the form of its value. */
export type Write = [index: number, channel: string, form: Json];

interface Writes {
  ns: string;
  id: string;
  task: string;
  path: string;
  writes: Write[];
}

interface Stored {
  task: string;
  index: number;
  path: string;
  channel: string;
  form: Json;
}

/** What a put knows of its checkpoint beside the record: entries of messages, and items of lists by channel. */
export interface Made {
  own: ReadonlyMap<string, string>;
  lists: ReadonlyMap<string, string[]>;
}

/** The name of a checkpoint in a thread, or of another pair of texts. */
export function pair(first: string, second: string): string {
  return JSON.stringify([first, second]);
}

/** A checkpoint: its record, and where each channel of its state is stored. */
export class Node {
  isGone = false;
  hasChild = false;
  /** The versions of its channels, once they are read. */
  versions: Json | undefined;
  up: Node | undefined;
  /** Later entries are appended below it, after the writes of this checkpoint. */
  tail: string;
  /** The entries of messages of this state, by the JSON of the message. */
  own: ReadonlyMap<string, string> = new Map();
  /** The checkpoint that has the value, for each channel. */
  readonly at: Map<string, Node>;

  constructor(
    readonly entry: string,
    readonly record: CheckpointRecord,
    readonly parent: Node | undefined,
  ) {
    this.tail = entry;
    this.up = parent;
    this.at = new Map(parent?.at);
    for (const name of record.dropped ?? []) this.at.delete(name);
    for (const name of Object.keys(record.values)) this.at.set(name, this);
  }

  /** Returns the form of the value of a channel, of a list with all items. */
  form(channel: string): Json {
    const items = itemsOf(this, channel);
    return items === undefined ? this.#own(channel) : { items };
  }

  #own(channel: string): Json {
    return this.at.get(channel)?.record.values[channel] as Json;
  }
}

/** Returns the forms of the items of a list at a checkpoint, or undefined if the value is stored whole. */
export function itemsOf(node: Node, channel: string): Json[] | undefined {
  const pieces: Json[][] = [];
  let limit = Infinity;
  for (let at: Node | undefined = node; at !== undefined && limit > 0;) {
    const owner: Node | undefined = at.at.get(channel);
    const value = owner?.record.values[channel];
    if (owner === undefined || !has(value, 'items') || !has(value, 'keep')) return undefined;
    const keep = value.keep as number;
    if (limit > keep) {
      pieces.push((value.items as Json[]).slice(0, limit - keep));
      limit = keep;
    }
    at = owner.parent;
  }
  return pieces.reverse().flat();
}

/** The checkpoints of an open session. */
export class Thread {
  size = 0;
  /** Whether its session is known to have the tag by which lists find it. */
  isTagged = false;
  /** The first entry. */
  head: string | undefined;
  readonly nodes = new Map<string, Node>();
  readonly messages = new Map<string, Entry>();
  readonly versions = new Map<string, number>();
  readonly newest = new Map<string, Node>();
  /**
   * The items of the lists that were put last, by namespace and channel, with the checkpoint that has them. A put that
   * continues there does not compute them again.
   */
  readonly lists = new Map<string, { node: Node; items: string[] }>();
  /** The entries of writes, by checkpoint. */
  readonly #counts = new Map<string, number>();
  readonly #writes = new Map<string, Map<string, Stored>>();
  readonly #expected = new Map<string, Made>();
  readonly #owners = new Map<string, Node>();
  #last: string | undefined;

  constructor(
    readonly client: Client,
    readonly key: string,
    readonly session: string,
    readonly path: string | undefined,
  ) {}

  /** Returns whether the file is there: another process may have deleted it. */
  isThere(): boolean {
    return this.path === undefined || existsSync(this.path);
  }

  /** Sets `size`: the bytes of the file twice, since the items of its lists are in memory twice. */
  measure(): void {
    const file =
      this.path === undefined ? undefined : statSync(this.path, { throwIfNoEntry: false });
    this.size = 2 * (file?.size ?? 0);
  }

  /** Reads what was appended since the last time, by any process. */
  async read(): Promise<void> {
    for (;;) {
      const since = this.#last === undefined ? {} : { since: this.#last };
      const page = await this.client.getEntries({
        sessionId: this.session,
        maxBytes: PAGE,
        ...since,
      });
      for (const entry of page.entries as unknown as Entry[]) {
        this.#take(entry);
        this.#last = entry.id;
      }
      if (page.nextCursor === undefined || page.entries.length === 0) return;
    }
  }

  /** Takes one entry, in file order. Entries of other programs mean nothing here. */
  #take(entry: Entry): void {
    if (entry.type === 'message' && has(entry, 'langgraph')) {
      this.messages.set(entry.id, entry);
      this.#follow(entry, false);
    } else if (entry.type === 'label') {
      this.#follow(entry, true);
    } else if (entry.type === 'custom' && typeof entry.data === 'object' && entry.data !== null) {
      if (entry.customType === HEAD) {
        this.head ??= entry.id;
      } else if (entry.customType === CHECKPOINT) {
        this.#place(entry.id, entry.data as CheckpointRecord);
      } else if (entry.customType === WRITES) {
        this.#write(entry.data as Writes);
        this.#follow(entry, true);
      } else if (entry.customType === GONE) {
        this.#remove(entry.data as { checkpoints: [string, string][] });
      }
    }
  }

  /** Remembers what a put knows until the entry of its checkpoint is read, in the order of the file. */
  expect(entry: string, made: Made): void {
    this.#expected.set(entry, made);
  }

  node(ns: string, id: string | undefined): Node | undefined {
    return id === undefined ? undefined : this.nodes.get(pair(ns, id));
  }

  /** Returns the checkpoint of the graph that runs this one as a part. */
  above(record: CheckpointRecord): Node | undefined {
    const { json } = record.metadata;
    const parents = ((has(json, 'parents') ? json.parents : undefined) ?? {}) as Json;
    const names = Object.keys(parents).filter((ns) => ns !== record.ns);
    names.sort((one, other) => other.length - one.length);
    for (const ns of names) {
      const node = this.node(ns, parents[ns] as string);
      if (node !== undefined) return node;
    }
    return undefined;
  }

  /** Returns the entry of this message on the path to a checkpoint. */
  known(node: Node | undefined, text: string): string | undefined {
    for (let at = node; at !== undefined; at = at.up) {
      const found = at.own.get(text);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Returns the JSON of the form of an item as it is without an entry of its own. */
  textOf(form: Json): string {
    const entry = 'entry' in form ? this.messages.get(form.entry as string) : undefined;
    if (entry === undefined) return JSON.stringify(form);
    return JSON.stringify({ message: entry.message, langgraph: entry.langgraph });
  }

  /** Returns a write that is stored. */
  write(ns: string, id: string, task: string, index: number): Stored | undefined {
    return this.#writes.get(pair(ns, id))?.get(`${index} ${task}`);
  }

  /** Returns how many entries have writes of a checkpoint. */
  count(ns: string, id: string): number {
    return this.#counts.get(pair(ns, id)) ?? 0;
  }

  /** Returns the writes of a checkpoint in the order of LangGraph. */
  writes(ns: string, id: string): Stored[] {
    const key = ({ path, task, index }: Stored) => writesSortKey(path, task, index);
    const stored = [...(this.#writes.get(pair(ns, id))?.values() ?? [])];
    return stored.sort((one, other) => compareWritesSortKeys(key(one), key(other)));
  }

  #place(entry: string, record: CheckpointRecord): void {
    const name = pair(record.ns, record.id);
    const parent = this.node(record.ns, record.parent);
    const node = new Node(entry, record, parent);
    node.up = parent ?? this.above(record);
    this.nodes.set(name, node);
    this.versions.set(name, (this.versions.get(name) ?? 0) + 1);
    this.#owners.set(entry, node);
    const made = this.#expected.get(entry);
    if (made !== undefined) {
      this.#expected.delete(entry);
      node.own = made.own;
      for (const [channel, items] of made.lists) {
        this.lists.set(pair(record.ns, channel), { node, items });
      }
    }
    if (parent !== undefined) {
      parent.hasChild = true;
      parent.tail = parent.entry;
    }
    const newest = this.newest.get(record.ns);
    if (newest === undefined || newest.isGone || newest.record.id <= record.id) {
      this.newest.set(record.ns, node);
    }
  }

  #write({ ns, id, task, path, writes }: Writes): void {
    const name = pair(ns, id);
    const stored = this.#writes.get(name) ?? new Map<string, Stored>();
    this.#writes.set(name, stored);
    this.#counts.set(name, this.count(ns, id) + 1);
    for (const [index, channel, form] of writes) {
      const at = `${index} ${task}`;
      // The first of several usual writes counts, and the last of errors or interrupts.
      if (index < 0 || !stored.has(at)) stored.set(at, { task, index, path, channel, form });
    }
  }

  #remove({ checkpoints }: { checkpoints: [string, string][] }): void {
    for (const [ns, id] of checkpoints) {
      const node = this.node(ns, id);
      if (node === undefined) continue;
      node.isGone = true;
      if (this.newest.get(ns) !== node) continue;
      for (const other of this.nodes.values()) {
        const newest = this.newest.get(ns);
        const isBetter = newest?.isGone !== false || newest.record.id < other.record.id;
        if (other.record.ns === ns && !other.isGone && isBetter) this.newest.set(ns, other);
      }
    }
  }

  #follow(entry: Entry, isEnd: boolean): void {
    const owner = this.#owners.get(entry.parentId ?? '');
    if (owner === undefined) return;
    this.#owners.set(entry.id, owner);
    if (isEnd) owner.tail = entry.id;
  }
}
