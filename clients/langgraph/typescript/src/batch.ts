// The entries of one checkpoint.

import { entryId } from './ids.js';
import { define, has, type Json } from './plain.js';
import { type Entry, itemsOf, type Made, type Node, pair, type Thread } from './thread.js';
import type { Seen } from './values.js';

/** The entries of one append, and the messages that they or earlier ones have. */
export class Batch implements Made {
  readonly entries: Entry[] = [];
  readonly own = new Map<string, string>();
  readonly lists = new Map<string, string[]>();

  constructor(
    readonly thread: Thread,
    readonly above: Node | undefined,
    readonly seed: readonly unknown[],
  ) {}

  /** Returns the forms of values below a checkpoint; messages get entries. */
  values(parent: Node | undefined, written: readonly [string, Seen][]): Json {
    const forms: Json = {};
    for (const [name, seen] of written) {
      const form = 'items' in seen ? this.#list(parent, name, seen.items) : this.#form(seen.whole);
      define(forms, name, form);
    }
    return forms;
  }

  /** Adds a label that says where a branch begins. */
  label(parent: Node, source: string, checkpoint: string): void {
    const { json } = parent.record.metadata;
    const step = has(json, 'step') ? String(json.step) : 'None';
    const kind = source === 'fork' || source === 'update' ? 'fork' : 'time travel';
    const [first = checkpoint] = this.own.values();
    const id = entryId('label', ...this.seed);
    this.entries.push({ type: 'label', id, targetId: first, label: `${kind} at step ${step}` });
  }

  /** Returns the form of a list: what is new after the common beginning. */
  #list(parent: Node | undefined, name: string, items: string[]): Json {
    this.lists.set(name, items);
    const before = this.#before(parent, name);
    let keep = 0;
    while (keep < items.length && keep < before.length && items[keep] === before[keep]) keep += 1;
    return { keep, items: items.slice(keep).map((text) => this.#form(text)) };
  }

  /** Returns the items that the list has in the checkpoint above. */
  #before(parent: Node | undefined, name: string): readonly string[] {
    const of = parent?.at.get(name);
    if (parent === undefined || of === undefined) return [];
    const last = this.thread.lists.get(pair(parent.record.ns, name));
    if (last?.node === of) return last.items;
    return (itemsOf(parent, name) ?? []).map((form) => this.thread.textOf(form));
  }

  #form(text: string): Json {
    const form = JSON.parse(text) as Json;
    if (!has(form, 'message')) return form;
    let id = this.own.get(text) ?? this.thread.known(this.above, text);
    if (id === undefined) {
      id = entryId('message', ...this.seed, this.entries.length, text);
      this.entries.push({ type: 'message', id, ...form });
    }
    this.own.set(text, id);
    return { entry: id };
  }
}
