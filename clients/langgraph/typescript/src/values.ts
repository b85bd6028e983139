// Values of channels as JSON in entries, and back. `schema/stores.md` has the forms.

import { JsonPlusSerializer, type SerializerProtocol } from '@langchain/langgraph-checkpoint';

import { isMessage, type MessageForm, messageOf, textOf } from './messages.js';
import { copy, define, DEPTH, has, isPlain, isRecord, type Json } from './plain.js';

/** A value that another language has stored, in a form that this one cannot read. */
export class UnreadableValue extends Error {
  override readonly name = 'UnreadableValue';
}

/** A value as it was when it was given: a list by its items, anything else as a whole, as the JSON of its form. */
export type Seen = { items: string[] } | { whole: string };

/**
 * Encodes by one serializer. With one other than LangGraph's own, such as an encrypting one, everything is as that
 * serializer writes it.
 */
export class Codec {
  readonly #isOpen: boolean;
  #waiting: Promise<void>[] = [];

  constructor(readonly serde: SerializerProtocol) {
    // Not one that extends it, which may write otherwise.
    this.#isOpen = Object.getPrototypeOf(serde) === JsonPlusSerializer.prototype;
  }

  /** Returns the value as it is now. */
  async see(value: unknown): Promise<Seen> {
    if (!this.#isOpen || !Array.isArray(value)) return { whole: await this.text(value) };
    const items: unknown[] = value;
    const texts = Array.from(items, (item) => this.text(item));
    const isDone = texts.every((text) => typeof text === 'string');
    return { items: isDone ? texts : await Promise.all(texts.map(async (text) => text)) };
  }

  /** Returns the JSON of the form of a value. All that has one is read before this returns. */
  text(value: unknown): Promise<string> | string {
    if (this.#isOpen && isMessage(value)) {
      const text = textOf(value);
      if (text !== undefined) return text;
    }
    const form = this.#form(value, DEPTH);
    const waiting = this.#waiting;
    if (waiting.length === 0) return JSON.stringify(form);
    this.#waiting = [];
    return Promise.all(waiting).then(() => JSON.stringify(form));
  }

  #form(value: unknown, depth: number): Json {
    if (this.#isOpen) {
      if (value === undefined) return { json: null, is: 'undefined' };
      if (isPlain(value, depth)) return { json: value };
      if (depth > 0 && isMessage(value)) {
        const text = textOf(value);
        if (text !== undefined) return JSON.parse(text) as Json;
      } else if (depth > 0 && Array.isArray(value)) {
        const items: unknown[] = value;
        return { keep: 0, items: Array.from(items, (item) => this.#form(item, depth - 2)) };
      } else if (depth > 0 && isRecord(value) && isPlain(Object.keys(value))) {
        const members: Json = {};
        for (const name of Object.keys(value)) {
          define(members, name, this.#form(value[name], depth - 2));
        }
        return { members };
      }
    }
    const form: Json = { type: '', base64: '' };
    this.#waiting.push(this.#dump(value, form));
    return form;
  }

  async #dump(value: unknown, form: Json): Promise<void> {
    const [type, data] = await this.serde.dumpsTyped(value);
    form.type = type;
    form.base64 = Buffer.from(data).toString('base64');
  }

  /** Returns a new copy of a value. `entries` has the messages by the ids of their entries. */
  async read(form: unknown, entries: ReadonlyMap<string, Json>): Promise<unknown> {
    const box: { value?: unknown } = {};
    const reader = new Reader(this.serde, this.#isOpen, entries);
    reader.into(box, 'value', form as Json);
    await reader.done();
    return box.value;
  }

  /** Returns new copies of the values of an object. */
  async readAll(forms: Json, entries: ReadonlyMap<string, Json>): Promise<Json> {
    const values: Json = {};
    const reader = new Reader(this.serde, this.#isOpen, entries);
    for (const name of Object.keys(forms)) reader.into(values, name, forms[name] as Json);
    await reader.done();
    return values;
  }
}

/** Reads values without waiting where it can. */
class Reader {
  readonly #waiting: Promise<void>[] = [];

  constructor(
    readonly serde: SerializerProtocol,
    readonly isOpen: boolean,
    readonly entries: ReadonlyMap<string, Json>,
  ) {}

  async done(): Promise<void> {
    if (this.#waiting.length > 0) await Promise.all(this.#waiting);
  }

  into(object: Json | unknown[], name: string | number, form: Json): void {
    // The place is kept, so that the members stay in order.
    define(object, name, undefined);
    if ('base64' in form) this.#waiting.push(this.#load(object, name, form));
    else define(object, name, this.#value(form));
  }

  #value(form: Json): unknown {
    if ('json' in form) return form.is === 'undefined' ? undefined : copy(form.json);
    if ('entry' in form) {
      const entry = this.entries.get(form.entry as string);
      if (entry === undefined) throw unreadable(`the message ${String(form.entry)} is not there`);
      return messageOf(entry as unknown as MessageForm);
    }
    if ('message' in form) return messageOf(form as unknown as MessageForm);
    if ('members' in form) {
      const members: Json = {};
      const forms = form.members as Json;
      for (const name of Object.keys(forms)) this.into(members, name, forms[name] as Json);
      return members;
    }
    if (!has(form, 'items')) throw unreadable('it has an unknown form');
    const items: unknown[] = [];
    for (const [index, item] of (form.items as Json[]).entries()) this.into(items, index, item);
    return items;
  }

  async #load(object: Json | unknown[], name: string | number, form: Json): Promise<void> {
    const type = form.type as string;
    if (this.isOpen && type !== 'json' && type !== 'bytes') {
      throw unreadable(`it is serialized as ${type}, which only LangGraph for Python reads`);
    }
    const data = Buffer.from(form.base64 as string, 'base64');
    // Not a part of a buffer that others share.
    define(object, name, await this.serde.loadsTyped(type, new Uint8Array(data)));
  }
}

function unreadable(why: string): UnreadableValue {
  return new UnreadableValue(
    `a value of the thread cannot be read: ${why}. Go on with the thread in the language that wrote it`,
  );
}
